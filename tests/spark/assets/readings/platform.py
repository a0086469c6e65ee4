"""The domain's tables after a bounded run, read without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from assets.readings.streams import READING_STREAMS
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.landing import Landing


@dataclass
class Platform:
    """The platform after a bounded run over everything that landed."""

    spark: SparkSession
    settings: Settings

    @classmethod
    def drained(
        cls,
        spark: SparkSession,
        home: Path,
        streams: Sequence[AnyStream],
        land: Callable[[Landing], None],
    ) -> Platform:
        """Land files, and take them through these streams."""
        settings = Settings(home=home)
        land(Landing(Path(settings.landing_root)))
        run_bounded(spark, settings, Topology(READING_STREAMS), streams, run_id="run")
        return cls(spark, settings)

    @property
    def landing(self) -> Path:
        return Path(self.settings.landing_root)

    def delta_rows(self, name: str, *columns: str) -> list[Row]:
        return delta_rows(self.settings.lake().path(name), *columns)

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(r) for r in self.delta_rows(name, *columns)), key=repr)


def utc(moment: datetime) -> datetime:
    """An instant as the rows hold it, without a zone, in UTC."""
    return moment.replace(tzinfo=UTC)
