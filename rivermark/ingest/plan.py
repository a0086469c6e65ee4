"""The plan of an ingest: which splits of its source make which batch, written down before reading.

A split becomes a row of the plan's table when it can be read. The streaming query of an ingest
reads that table, so the order and the grouping of splits are decided once and are the same in every
replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.ingest.split_outcomes import files_read, splits_read_again
from rivermark.ingest.watermark import Progress
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import dataset_of, delta_table, read_batches, read_rows
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import RecordsLost
from rivermark.model.sink import Origin, owned
from rivermark.model.source import BATCH_BYTES, Part, PlannedSplit, SourceReader, Split, Waiting
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.time import EPOCH

PLAN_SCHEMA: Final = StructType(
    [
        StructField("arrival", LongType()),
        StructField("path", StringType()),
        StructField("name", StringType()),
        StructField("size", LongType()),
        StructField("modified_at", TimestampType()),
        StructField("landed_at", TimestampType()),
        StructField("format", StringType()),
        StructField("columns", StringType()),
        StructField("head", StringType()),
        StructField("status", StringType()),
        StructField("reason", StringType()),
        StructField("digest", StringType()),
    ]
)
"""The fields of `PlannedSplit`; `arrival` is the number of the planned batch."""


def plan_table(ingest: Ingest) -> Table:
    """The table of an ingest's planned splits: one commit a planned batch, in order."""
    return Table(
        name=f"ops/arrivals/{ingest.name}",
        schema=PLAN_SCHEMA,
        description=f"Splits planned for '{ingest.name}', in the order in which they are read.",
    )


def planned_split(row: dict[str, Any]) -> PlannedSplit:
    """A row of the plan's table, with times in any zone."""
    values = dict(row)
    batch = values.pop("arrival")
    for name in ("modified_at", "landed_at"):
        values[name] = values[name].astimezone(UTC)
    return PlannedSplit(batch=batch, **values)


def planned_names(lake: Lake, ingest: Ingest, version: int | None = None) -> list[str]:
    """The names of an ingest's planned splits, as of a version of the plan; now without one."""
    table = plan_table(ingest)
    if not lake.exists(table):
        return []
    rows = read_rows(dataset_of(delta_table(lake.path(table), version)), columns=["name"])
    return [str(name) for name in rows["name"].to_pylist()]


def open_source(lake: Lake, landing_root: str, ingest: Ingest) -> SourceReader:
    """Open an ingest's source behind all that is planned, without writing anything."""
    reader = ingest.source.open(landing_root)
    reader.expect(ingest.contract.spellings())
    table = plan_table(ingest)
    if lake.exists(table):
        dataset = dataset_of(delta_table(lake.path(table)))

        def plan(*columns: str) -> Iterable[tuple[Any, ...]]:
            for rows in read_batches(dataset, columns=list(columns)):
                yield from zip(*(column.to_pylist() for column in rows.columns), strict=True)
            for split in splits_read_again(lake, ingest.name):
                yield tuple(getattr(split, column) for column in columns)

        reader.restore(plan)
    return reader


@contextmanager
def opened_source(lake: Lake, landing_root: str, ingest: Ingest) -> Iterator[SourceReader]:
    """An ingest's source behind all that is planned, to look at it once; closed at the end.

    Raises:
        RecordsLost: what was asked of the source is gone; with the ways on for this ingest.
    """
    with closing(open_source(lake, landing_root, ingest)) as source:
        try:
            yield source
        except RecordsLost as error:
            raise error.of_stream(ingest.name) from error


def lost_splits(lake: Lake, landing_root: str, ingest: Ingest) -> Sequence[Split]:
    """Splits that are gone from an ingest's source before they were read; writes nothing."""
    with opened_source(lake, landing_root, ingest) as source:
        return source.lost(_unread(lake, ingest))


def parts_of(lake: Lake, landing_root: str, ingest: Ingest) -> Sequence[Part]:
    """The parts of an ingest's source, such as partitions, with what is in no table yet of each."""
    if not ingest.source.together:
        return ()
    with opened_source(lake, landing_root, ingest) as source:
        return source.parts(_unread(lake, ingest))


def _unread(lake: Lake, ingest: Ingest) -> list[PlannedSplit]:
    """The planned splits whose outcome is not recorded."""
    table = plan_table(ingest)
    if not lake.exists(table):
        return []
    done = files_read(lake, ingest.name)
    rows = read_rows(dataset_of(delta_table(lake.path(table)))).to_pylist()
    return [planned_split(row) for row in rows if row["name"] not in done]


@dataclass
class Poll:
    """The result of one poll of a source.

    `planned` counts new splits of the plan, `held` those that are ready and wait for the batches
    before them, `aligned` names the producers that are held back. `waiting` are not ready;
    `changed` have changed since they were read, which the tables do not show.
    """

    planned: int = 0
    held: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    changed: list[Waiting] = field(default_factory=list)
    aligned: frozenset[str] = frozenset()


class BatchPlanner:
    """Plans the batches of one ingest; one instance a run, under the stream's lease."""

    def __init__(
        self,
        lake: Lake,
        landing_root: str,
        ingest: Ingest,
        run_id: str,
        check: Callable[[], None] = owned,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        """Open the source; `batch_bytes` close a batch where the source says nothing of that."""
        self.ingest = ingest
        self._lake = lake
        self.table = plan_table(ingest)
        create_table(lake, self.table)
        origin = Origin(f"{ingest.name}:arrivals", 0, EPOCH, run_id, check)
        self._writer = TableWriter(lake, self.table, origin)
        self.source = open_source(lake, landing_root, ingest)
        if self.source.limit.weight is None:
            self.source.limit = replace(self.source.limit, weight=batch_bytes)
        dataset = dataset_of(delta_table(lake.path(self.table)))
        self.source.start()
        newest = pc.max(read_rows(dataset, columns=["arrival"])["arrival"]).as_py()
        self._newest: int = -1 if newest is None else newest
        self._waiting: set[str] = set()
        """The producers of what was ready and not planned."""

    @property
    def newest(self) -> int:
        """The newest planned batch's number; -1 before the first."""
        return self._newest

    def poll(
        self, *, most: int | None = None, full: bool = True, progress: Progress | None = None
    ) -> Poll:
        """Plan what is ready, as `most` batches at most; a poll that is not full sees no changes.

        Not full polls are cheaper: files are listed by name, and only new ones are opened.
        By the `progress` of event time producers that run ahead of the others are held back.
        """
        held = self._ahead(progress)
        self.source.hold_back(held)
        try:
            discovery = self.source.discover(full=full)
        except RecordsLost as error:
            raise error.of_stream(self.ingest.name) from error
        producer = self.ingest.source.producer
        ready = [s for s in discovery.ready if not held or producer(s.name) not in held]
        planned = 0
        for group in [*self.source.batches(ready)][:most]:
            self._commit(group)
            planned += len(group)
        if self.ingest.watermark is not None:
            self._waiting = {producer(split.name) for split in ready[planned:]}
        waiting = len(ready) - planned
        return Poll(planned, waiting, discovery.waiting, discovery.changed, held)

    def _ahead(self, progress: Progress | None) -> frozenset[str]:
        rule = self.ingest.watermark
        if rule is None or progress is None or progress.producers is None:
            return frozenset()
        return progress.producers.ahead(self._waiting, datetime.now(UTC), rule)

    def accept_loss(self) -> Sequence[Split]:
        """Plan what is gone from the source as lost, as one batch, so that reading can go on."""
        lost = self.source.lost(_unread(self._lake, self.ingest))
        if lost:
            self._commit(lost)
        return lost

    def _commit(self, splits: Sequence[Split]) -> None:
        self._newest += 1
        now = datetime.now(UTC)
        rows = [
            {
                "arrival": self._newest,
                "path": split.path,
                "name": split.name,
                "size": split.size,
                "modified_at": split.modified_at,
                "landed_at": now,
                "format": split.format,
                "columns": split.columns,
                "head": split.head,
                "status": split.status,
                "reason": split.reason,
                "digest": split.digest,
            }
            for split in splits
        ]
        self._writer.append_once(rows_of(self.table, rows), self._newest)
        self.source.planned(splits)
