"""What every backfill works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rivermark.lake.lake import Lake
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.result import Reprocessing


@dataclass(frozen=True, kw_only=True)
class BackfillContext:
    """A deployment, Spark on demand, and who is told what happens.

    `spark` returns the session; it is called only where days have to be computed. `on_step` takes
    progress in words, `on_done` each reprocessing as soon as its rows are in place.
    """

    settings: Settings
    topology: Topology
    spark: Callable[[], SparkSession]
    run_id: str
    on_step: Callable[[str], None] = lambda _: None
    on_done: Callable[[Reprocessing], None] = lambda _: None

    @property
    def lake(self) -> Lake:
        """The lake of the deployment."""
        return self.settings.lake()
