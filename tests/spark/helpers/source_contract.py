"""What every source must do, as tests that its own test module inherits."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, TimestampType

from rivermark import Contract, Field, Ingest, Rule, Table, readers
from rivermark.ingest.admission import Admission
from rivermark.ingest.batch.executors import numbered
from rivermark.ingest.lines import read_numbered
from rivermark.ingest.plan import BatchPlanner, open_source, plan_table, planned_split
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.lake import Lake
from rivermark.model.sink import Origin
from rivermark.model.source import PIECE_BYTES, Piece, PlannedSplit, Records
from rivermark.sources import Source
from tests.kills import Killer

FIRST: Final = datetime(2024, 3, 1, 10, tzinfo=UTC)
EVENT: Final = Contract(
    fields=(
        Field("id", LongType(), ("value",), required=True),
        Field("at", TimestampType(), ("timestamp",), required=True),
    ),
    event_time="at",
    max_ahead=timedelta(days=40_000),
)
BROKEN, LATE = 1, 2
"""Of four numbers in a row the second is quarantined, and the third an hour late."""


AT: Final = "CAST(text AS TIMESTAMPTZ)"
AN_HOUR_BACK: Final = readers.sql(
    f"CASE epoch({AT})::BIGINT % 4 WHEN {LATE} THEN {AT} - INTERVAL 1 HOUR ELSE {AT} END"
)
"""Reads a time, where its second says so an hour earlier."""


PICKLE: Final[Any] = CloudPickleSerializer()
READ_AT: Final = ("_ingested_at", "_landed_at", "landed_at")
READER_STEPS: Final = ("discover", "planned", "pieces", "committed")
BEFORE_QUARANTINE: Final = 8
"""Behind discover, the plan's commit, planned, pieces, and commits of raw, admitted and late."""
OF_ALL_KINDS: Final = replace(
    EVENT,
    fields=(EVENT.fields[0], replace(EVENT.fields[1], read=AN_HOUR_BACK)),
    rules=(Rule("broken", f"id % 4 = {BROKEN}", "quarantine", "Of every four one."),),
)
"""The same events; some are late, and some break a rule."""


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
    lake_name: str = "lake"

    @property
    def lake(self) -> Lake:
        return Lake(str(self.root / self.lake_name))

    @property
    def landing(self) -> str:
        return str(self.root / "landing")

    def run(self, driver_bytes: int | None = None) -> None:
        """A bounded run: plan, and admit batch by batch from the first unfinished one on."""
        planner = BatchPlanner(self.lake, self.landing, self.ingest, "run")
        origin = Origin(self.ingest.name, 0, FIRST, "run")
        admission = Admission(self.spark, self.lake, self.ingest, planner.source, origin)
        if driver_bytes is not None:
            admission.driver_bytes = driver_bytes
        try:
            planner.poll()
            splits = sorted(self.plan(), key=lambda s: s.batch)
            for batch, group in itertools.groupby(splits, key=lambda s: s.batch):
                if batch > self.done:
                    admission.admit([*group], batch)
                    self.finish(batch)
        finally:
            planner.source.close()

    def finish(self, batch: int) -> None:
        """Remember that a batch is done."""
        self.done = batch

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

    def damage(self, root: Path, number: int) -> int:
        """Add splits that cannot be read, where the source can have any; returns how many."""
        return 0

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
        "driver_bytes",
        [
            pytest.param(None, id="in the driver"),
            pytest.param(0, id="on Spark", marks=pytest.mark.long),
        ],
    )
    def test_records_are_admitted_once_with_their_positions_whatever_the_runs(
        self, deployment: Deployment, driver_bytes: int | None
    ) -> None:
        ingest = deployment.ingest
        for numbers in (range(5), range(5, 6), range(6, 13)):
            self.produce(deployment.root, numbers)
            assert backlog(deployment) > 0
            deployment.run(driver_bytes)
            assert backlog(deployment) == 0
        deployment.run(driver_bytes)

        assert deployment.ids(ingest.admitted) == [*range(13)]
        assert deployment.rows(ingest.quarantine) == []
        raw = deployment.rows(ingest.raw)
        places = {(row["_file"], row["_row"]) for row in raw}
        assert len(places) == len(raw) == 13
        by_split = {split.name: split.batch for split in deployment.plan()}
        assert all(by_split[row["_file"]] == row["_ingest_batch"] for row in raw)
        producers = {ingest.source.producer(s.name) for s in deployment.plan()}
        assert producers == self.producers(ingest.source)

    def test_tasks_write_the_tables_that_the_driver_writes(self, deployment: Deployment) -> None:
        deployment.ingest = replace(deployment.ingest, contract=OF_ALL_KINDS)
        self.produce(deployment.root, range(1))
        self.produce(deployment.root, range(1, 40))
        by_tasks = self.beside(deployment)
        deployment.run()
        by_tasks.run(driver_bytes=0)
        assert_same_tables(deployment, by_tasks)

    def beside(self, deployment: Deployment) -> Deployment:
        """Another deployment that reads what this one reads."""
        return replace(deployment, lake_name="by_tasks")

    @pytest.mark.parametrize(
        "points",
        [
            pytest.param((BEFORE_QUARANTINE,), id="before the quarantine's commit"),
            pytest.param(range(1, 100), id="before each step", marks=pytest.mark.long),
        ],
    )
    def test_a_kill_leaves_each_good_late_and_broken_row_once(
        self, deployment: Deployment, killer: Killer, points: Iterable[int]
    ) -> None:
        deployment.ingest = replace(deployment.ingest, contract=OF_ALL_KINDS)
        steps_of(deployment, killer)
        self.produce(deployment.root, range(1))
        deployment.run()
        end = damaged = 0
        for due in points:
            end += 4
            self.produce(deployment.root, range(end - 3, end + 1))
            damaged += self.damage(deployment.root, end)
            is_killed = killer.kills(due, deployment.run)
            deployment.run()
            assert backlog(deployment) == 0
            assert_each_row_is_there_once(deployment, range(end + 1), damaged, f"before step {due}")
            if not is_killed:
                break
        # Beside the reader's: the commits of the plan, of four tables and of the outcomes; the end.
        assert is_killed or due > len(READER_STEPS) + 7

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

    def test_pieces_of_any_size_are_the_same_records_also_on_executors(
        self, deployment: Deployment
    ) -> None:
        self.produce(deployment.root, range(40))
        planner = BatchPlanner(deployment.lake, deployment.landing, deployment.ingest, "run")
        planner.poll()
        planner.source.close()
        splits = deployment.plan()
        reader = open_source(deployment.lake, deployment.landing, deployment.ingest)
        whole = places(
            read_numbered(reader.pieces(deployment.spark, splits, PIECE_BYTES), reader.read)
        )
        assert len(whole) == 40
        for most in (1, 100, 1_000):
            pieces = reader.pieces(deployment.spark, splits, most)
            sent: list[Piece] = PICKLE.loads(PICKLE.dumps([*pieces]))
            assert places(read_numbered(sent, lambda piece: piece.read())) == whole, most
            alone = [places(piece.read()) for piece in numbered(deployment.spark, sent)]
            assert [place for own in alone for place in own] == whole, most


def places(records: Iterable[Records]) -> list[tuple[str, int, str]]:
    """Split, place and payload of each record."""
    return [
        (each.splits[row["_split"]], row["_row"], row["payload"])
        for each in records
        for row in each.rows.to_pylist()
    ]


def steps_of(deployment: Deployment, killer: Killer) -> None:
    """Make a step of all that a run does, one after the other, to what outlasts it."""
    reader = type(open_source(deployment.lake, deployment.landing, deployment.ingest))
    for name in READER_STEPS:
        killer.before(f"{reader.__module__}.{reader.__qualname__}.{name}")
    killer.before("rivermark.lake.batch_writer.TableWriter.append_once")
    killer.before("rivermark.ingest.lookup_table.LookupTable.merge")
    killer.before(f"{Deployment.__module__}.{Deployment.__qualname__}.finish")


def assert_each_row_is_there_once(
    deployment: Deployment, numbers: range, damaged: int, when: str
) -> None:
    """Each number is in the table that it belongs to and in no other, once, and counted so."""
    ingest = deployment.ingest
    kinds = {"admitted": ingest.admitted, "late": ingest.late, "quarantined": ingest.quarantine}
    rows = {kind: deployment.rows(table) for kind, table in kinds.items()}
    whole = [row for row in rows["quarantined"] if row["_row"] is None]
    assert len(whole) == damaged, when
    assert deployment.ids(ingest.admitted) == [n for n in numbers if n % 4 in (0, 3)], when
    assert deployment.ids(ingest.late) == [n for n in numbers if n % 4 == LATE], when
    places = Counter((row["_file"], row["_row"]) for row in deployment.rows(ingest.raw))
    assert len(places) == places.total() == len(numbers), when
    decided = [row for kind in rows.values() for row in kind if row["_row"] is not None]
    assert Counter((row["_file"], row["_row"]) for row in decided) == places, when
    outcomes = deployment.rows(INGEST_FILES)
    assert len({row["file"] for row in outcomes}) == len(outcomes), when
    for kind, of_kind in rows.items():
        count = len(of_kind) - (damaged if kind == "quarantined" else 0)
        assert sum(row[kind] for row in outcomes) == count, when


def assert_same_tables(one: Deployment, other: Deployment) -> None:
    """Both have the same rows in all tables, but for when they were read."""
    for table in one.ingest.tables:
        # A quarantined row has the time at which its split was read, where it has none of its own.
        left_out = {*READ_AT, *(["event_time"] if table == one.ingest.quarantine else [])}
        of_one, of_other = (
            sorted(
                repr({k: v for k, v in row.items() if k not in left_out})
                for row in each.rows(table)
            )
            for each in (one, other)
        )
        assert of_one == of_other, table.name
    assert one.rows(one.ingest.raw)


def backlog(deployment: Deployment) -> int:
    """How many splits are there that no plan holds."""
    reader = open_source(deployment.lake, deployment.landing, deployment.ingest)
    found = reader.backlog()
    assert (found.splits == 0) == (found.oldest is None)
    return found.splits


def payloads(deployment: Deployment, splits: list[PlannedSplit]) -> list[str]:
    """The payloads of splits, as a reader that was just opened reads them."""
    reader = open_source(deployment.lake, deployment.landing, deployment.ingest)
    pieces = reader.pieces(deployment.spark, splits, PIECE_BYTES)
    texts: list[str] = []
    for records in read_numbered(pieces, reader.read):
        texts += records.rows["payload"].to_pylist()
    return texts
