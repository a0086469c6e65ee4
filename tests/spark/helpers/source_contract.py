"""What every source must do, as tests that its own test module inherits."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, TimestampType

from rivermark import Contract, Field, Ingest, Source, Table
from rivermark.ingest.admission import Admission
from rivermark.ingest.plan import BatchPlanner, open_source, plan_table, planned_split
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.lake import Lake
from rivermark.model.sink import Origin
from rivermark.model.source import PlannedSplit
from tests.spark.helpers.crashes import CrashError, crash_once

FIRST: Final = datetime(2024, 3, 1, 10, tzinfo=UTC)
EVENT: Final = Contract(
    fields=(
        Field("id", LongType(), ("value",), required=True),
        Field("at", TimestampType(), ("timestamp",), required=True),
    ),
    event_time="at",
    max_ahead=timedelta(days=40_000),
)


def event(number: int) -> dict[str, Any]:
    """A record: one a second."""
    return {"id": number, "at": FIRST + timedelta(seconds=number)}


@dataclass
class Deployment:
    """An ingest beside a lake; what a checkpoint would remember lies in `done`."""

    spark: SparkSession
    root: Path
    ingest: Ingest
    done: int = field(default=-1)

    @property
    def lake(self) -> Lake:
        return Lake(str(self.root / "lake"))

    @property
    def landing(self) -> str:
        return str(self.root / "landing")

    def run(self, collected_bytes: int | None = None) -> None:
        """A bounded run: plan, and admit batch by batch from the first unfinished one on."""
        planner = BatchPlanner(self.lake, self.landing, self.ingest, "run")
        origin = Origin(self.ingest.name, 0, FIRST, "run")
        admission = Admission(self.spark, self.lake, self.ingest, planner.source, origin)
        if collected_bytes is not None:
            admission.collected_bytes = collected_bytes
        try:
            planner.poll()
            splits = sorted(self.plan(), key=lambda s: s.batch)
            for batch, group in itertools.groupby(splits, key=lambda s: s.batch):
                if batch > self.done:
                    admission.admit([*group], batch)
                    self.done = batch
        finally:
            planner.source.close()

    def plan(self) -> list[PlannedSplit]:
        """The splits of the plan."""
        return [planned_split(row) for row in self.rows(plan_table(self.ingest))]

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """The rows of a table; none where it does not exist."""
        if not self.lake.exists(table):
            return []
        rows: list[dict[str, Any]] = (
            DeltaTable(self.lake.path(table)).to_pyarrow_table().to_pylist()
        )
        return rows

    def ids(self, table: Table) -> list[int]:
        """The sorted ids of a table's rows."""
        return sorted(row["id"] for row in self.rows(table))


class SourceContract(ABC):
    """The contract of `rivermark.model.source`; `source` and `produce` describe one source.

    `produce` adds the records `event(n)` of a range of numbers behind those that are there.
    """

    @abstractmethod
    def source(self, root: Path) -> Source:
        """The declared source."""

    @abstractmethod
    def produce(self, root: Path, numbers: range) -> None:
        """Make further records available."""

    def producers(self, source: Source) -> set[str]:
        """Who made the records."""
        return {source.name}

    @pytest.fixture
    def deployment(self, spark: SparkSession, tmp_path: Path) -> Deployment:
        """The source, with nothing read yet."""
        ingest = Ingest(
            name="test/events",
            source=self.source(tmp_path),
            contract=EVENT,
            lateness=timedelta(seconds=1),
            description="Events.",
            group="test",
        )
        return Deployment(spark, tmp_path, ingest)

    @pytest.mark.parametrize(
        "collected_bytes",
        [
            pytest.param(None, id="in the driver"),
            pytest.param(0, id="on Spark", marks=pytest.mark.long),
        ],
    )
    def test_records_are_admitted_once_with_their_positions_whatever_the_runs(
        self, deployment: Deployment, collected_bytes: int | None
    ) -> None:
        ingest = deployment.ingest
        for numbers in (range(5), range(5, 6), range(6, 13)):
            self.produce(deployment.root, numbers)
            assert backlog(deployment) > 0
            deployment.run(collected_bytes)
            assert backlog(deployment) == 0
        deployment.run(collected_bytes)

        assert deployment.ids(ingest.admitted) == [*range(13)]
        assert deployment.rows(ingest.quarantine) == []
        raw = deployment.rows(ingest.raw)
        places = {(row["_file"], row["_row"]) for row in raw}
        assert len(places) == len(raw) == 13
        by_split = {split.name: split.batch for split in deployment.plan()}
        assert all(by_split[row["_file"]] == row["_ingest_batch"] for row in raw)
        producers = {ingest.source.producer(s.name) for s in deployment.plan()}
        assert producers == self.producers(ingest.source)

    @pytest.mark.long
    def test_a_kill_between_any_two_steps_loses_and_doubles_nothing(
        self, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ingest = deployment.ingest
        tables = [plan_table(ingest), ingest.raw, ingest.admitted, INGEST_FILES]
        points = [(t.name, before) for t in tables for before in (True, False)]
        for step, (table, before) in enumerate(points):
            self.produce(deployment.root, range(2 * step, 2 * step + 2))
            with monkeypatch.context() as patch:
                crash_once(patch, table, before=before)
                with pytest.raises(CrashError):
                    deployment.run()
            deployment.run()
            assert deployment.ids(ingest.admitted) == [*range(2 * step + 2)], (table, before)

        assert deployment.ids(ingest.admitted) == [*range(2 * len(points))]
        outcomes = deployment.rows(INGEST_FILES)
        assert len({row["file"] for row in outcomes}) == len(outcomes)
        assert sum(row["admitted"] for row in outcomes) == 2 * len(points)

    def test_planned_splits_are_read_again_as_they_were(self, deployment: Deployment) -> None:
        self.produce(deployment.root, range(6))
        planner = BatchPlanner(deployment.lake, deployment.landing, deployment.ingest, "run")
        planner.poll()
        planner.source.close()
        splits = deployment.plan()
        first = payloads(deployment, splits)
        self.produce(deployment.root, range(6, 9))

        assert len(first) == 6
        assert payloads(deployment, splits) == first


def backlog(deployment: Deployment) -> int:
    """How many splits are there that no plan holds."""
    reader = open_source(deployment.lake, deployment.landing, deployment.ingest)
    found = reader.backlog()
    assert (found.splits == 0) == (found.oldest is None)
    return found.splits


def payloads(deployment: Deployment, splits: list[PlannedSplit]) -> list[str]:
    """The payloads of splits, as a reader that was just opened reads them."""
    reader = open_source(deployment.lake, deployment.landing, deployment.ingest)
    rows = reader.read(deployment.spark, splits, small=True).rows
    assert isinstance(rows, pa.Table)
    texts: list[str] = rows["payload"].to_pylist()
    return texts
