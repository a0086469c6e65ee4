"""Reading a Delta table as a source: its rows as they are, then the rows of each commit."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import DeltaError, DeltaProtocolError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import VariantType

from rivermark.ingest.source.delta_table_pieces import DataFilesPiece, cut
from rivermark.ingest.source.payload import TypedRecords, held, joined
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.lake.delta import damage_named, dataset_of, delta_table, read_delta
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_check import check_log
from rivermark.lake.integrity.log_entry import entry_path, read_entry
from rivermark.lake.log import CommitLog
from rivermark.lake.statistics import file_sizes
from rivermark.model.errors import RivermarkError
from rivermark.model.source import (
    Backlog,
    Discovery,
    Piece,
    PlannedSplit,
    PlanRows,
    SourceReader,
    Split,
    backlog_of,
)

if TYPE_CHECKING:
    pass

FEED: Final = "delta.enableChangeDataFeed"

CHANGE: Final = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that the change data feed adds to a table's own."""

ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:/", re.IGNORECASE)
"""How the name of a data file begins that does not lie in the table's own folder."""

MARK: Final = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class _Commit:
    """The parts of a commit that a source needs: operation, time, and files by their actions."""

    operation: str
    at: datetime
    added: tuple[str, ...]
    removes_rows: bool
    size: int


class DeltaReader(SourceReader):
    """Reads versions of one table; a split is a version."""

    def __init__(self, table: str, from_version: int | None, *, feed: bool) -> None:
        self._table = table
        self._feed = feed
        self._wanted: Collection[str] | None = None
        self._log = CommitLog(table)
        self._next: int | None = from_version
        """The version to be planned next; None before the snapshot."""
        self._mark: str | None = None
        """Of the log entry of the version before it; None where that was not kept."""

    def expect(self, columns: Collection[str]) -> None:
        """Take these columns for those that matter: what is no text in another one is kept."""
        self._wanted = frozenset(name.lower() for name in columns)

    def restore(self, plan: PlanRows) -> None:
        """Continue behind the newest version of the plan."""
        newest = max(plan("name", "path"), key=lambda row: version_of(row[0]), default=None)
        if newest is not None:
            self._next, self._mark = version_of(newest[0]) + 1, mark_of(newest[1])

    def planned(self, splits: Sequence[Split]) -> None:
        """Continue behind the last one."""
        self._next, self._mark = version_of(splits[-1].name) + 1, mark_of(splits[-1].path)

    def discover(self, *, full: bool = True) -> Discovery:
        """The snapshot, where nothing is planned yet, and every commit since."""
        ready: list[Split] = []
        following = self._next
        if full or following is None:
            versions = self._log.versions()
            if not versions:
                return Discovery()
            self._require_feed()
            if following is None:
                ready.append(self._snapshot(versions[-1]))
                following = versions[-1] + 1
            elif versions[0] > following:
                raise self._gone(following, versions[0])
            else:
                self._check_same(following - 1, versions[-1])
        elif self._log.holds(following):
            self._check_same(following - 1, following)
        for split in self._commits(following):
            # Rows are read in the order of versions, whatever the writers' clocks said.
            at = max([split.modified_at, *(s.modified_at for s in ready[-1:])])
            ready.append(replace(split, modified_at=at))
        return Discovery(ready)

    def _snapshot(self, version: int) -> Split:
        table = delta_table(self._table, version=version)
        return self._split("snapshot", version, sum(file_sizes(table)), self._commit(version).at)

    def _commits(self, version: int) -> Iterator[Split]:
        while self._log.holds(version):
            commit = self._commit(version)
            if commit.removes_rows and not self._feed:
                raise RivermarkError(
                    f"version {version} of the Delta table {self._table} changes or deletes rows "
                    f"({commit.operation}), which reading by appends would miss. Follow them with "
                    f"changes='feed' (the table needs {FEED}=true from then on), or skip what "
                    f"was changed with from_version={version + 1} and a reset of the stream"
                )
            if commit.added or commit.removes_rows:
                yield self._split("version", version, commit.size, commit.at)
            version += 1

    def _split(self, kind: str, version: int, size: int, at: datetime) -> Split:
        return Split(
            name=f"{kind}-{version:020d}",
            # Begins with the version: rows of one moment are in the order of their versions.
            path=f"{version:020d}/{kind}/{self._table}#{self._mark_at(version)}",
            size=max(size, 1),
            modified_at=at,
            format="delta",
        )

    def _mark_at(self, version: int) -> str:
        """By what the log's entry of a version is known again."""
        store, folder = filesystem(f"{self._table}/_delta_log")
        with store.open_input_stream(entry_path(folder, version)) as file:
            return f"{zlib.crc32(file.read()):08x}"

    def _check_same(self, read: int, newest: int) -> None:
        """Refuse a table whose last version that was read is not what it was then.

        Raises RivermarkError.
        """
        if self._mark is None:
            return  # Nothing was read yet, or by an earlier release.
        is_kept = self._log.holds(read)
        if newest >= read and (not is_kept or self._mark == self._mark_at(read)):
            return
        raise RivermarkError(
            f"the Delta table {self._table} was deleted and made again, or restored to an "
            f"older version: version {read}, up to which it was read, is "
            f"{'another one' if is_kept else 'not there'}. Put the table back; to begin again "
            "with it as it is, reset the stream with its tables"
        )

    def _require_feed(self) -> None:
        configuration = delta_table(self._table).metadata().configuration
        if self._feed and configuration.get(FEED, "false").lower() != "true":
            raise RivermarkError(
                f"the Delta table {self._table} records no change data feed: set its property "
                f"{FEED}=true, or read it without changes='feed'"
            )

    def _gone(self, version: int, oldest: int) -> RivermarkError:
        return RivermarkError(
            f"versions {version} to {oldest - 1} of the Delta table {self._table} were removed "
            "from its log before they were read. Keep them longer (delta.logRetentionDuration); "
            "to begin again with the table as it is, reset the stream with its tables"
        )

    def _commit(self, version: int) -> _Commit:
        store, folder = filesystem(f"{self._table}/_delta_log")
        actions = read_entry(store, folder, version)
        info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        millis = int(info.get("inCommitTimestamp") or info.get("timestamp", 0))
        adds = [a["add"] for a in actions if "add" in a and a["add"]["dataChange"]]
        removes = [a["remove"] for a in actions if "remove" in a and a["remove"]["dataChange"]]
        changes = [a["cdc"] for a in actions if "cdc" in a]
        return _Commit(
            operation=str(info.get("operation", "unknown")),
            at=datetime.fromtimestamp(millis / 1000, UTC),
            added=tuple(unquote(add["path"]) for add in adds),
            removes_rows=bool(removes),
            size=sum(f.get("size") or 0 for f in (changes or [*adds, *removes])),
        )

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """Cut the versions by their files; the changes of one, and what Spark alone reads, not."""
        return [piece for split in splits for piece in self._pieces(spark, split, most_bytes)]

    def _pieces(self, spark: SparkSession, split: PlannedSplit, most_bytes: int) -> Sequence[Piece]:
        try:
            if self._feed and not is_snapshot(split.name):
                return held([split], [self._changes(split)])
            return [*self._files(split, most_bytes)]
        except (DeltaProtocolError, DeltaError):
            # A feature of the table that delta-rs cannot read; Spark reads it, or says why not.
            rows = self._frame(spark, split).toArrow()
            return held([split], [joined([TypedRecords(each) for each in rows["payload"].chunks])])

    def _files(self, split: PlannedSplit, most_bytes: int) -> Iterator[Piece]:
        version = version_of(split.name)
        dataset = dataset_of(delta_table(self._table, version=version))
        if any(ELSEWHERE.match(name) for name in dataset.files):
            raise DeltaProtocolError("files of another table, as a shallow clone has them")
        # Of a version the files that its own commit added, in the commit's order.
        names = dataset.files if is_snapshot(split.name) else self._commit(version).added
        first = 0
        for files, weight in cut(dataset.of_files(names), split.weight, most_bytes):
            yield DataFilesPiece(
                splits=(split.name,),
                weight=weight,
                first=first,
                files=files,
                more=self._snapshot_change(split),
                wanted=self._wanted,
            )
            with damage_named(files):
                first += files.count_rows()

    def _changes(self, split: PlannedSplit) -> TypedRecords:
        version = version_of(split.name)
        changes = delta_table(self._table).load_cdf(version, version)
        rows = pa.RecordBatchReader.from_stream(changes).read_all()
        at = rows.schema.get_field_index(CHANGE[2])
        when = pa.scalar(split.modified_at, pa.timestamp("us", "UTC"))
        rows = rows.set_column(at, CHANGE[2], pa.repeat(when, rows.num_rows))
        return joined([typed_records(batch, self._wanted) for batch in rows.to_reader()])

    def _snapshot_change(self, split: Split) -> dict[str, Any]:
        if not self._feed or not is_snapshot(split.name):
            return {}
        return dict(zip(CHANGE, ("insert", version_of(split.name), split.modified_at), strict=True))

    def _frame(self, spark: SparkSession, split: PlannedSplit) -> DataFrame:
        version = version_of(split.name)
        if self._feed and not is_snapshot(split.name):
            check_log(self._table)
            reader = spark.read.format("delta").option("readChangeFeed", "true")
            reader = reader.option("startingVersion", version).option("endingVersion", version)
            # Spark takes the time of the log's file, which differs when the table is copied.
            frame = reader.load(self._table).withColumn(CHANGE[2], F.lit(split.modified_at))
        else:
            frame = read_delta(spark, self._table, version)
        if not self._feed and not is_snapshot(split.name):
            names = [path.rsplit("/", 1)[-1] for path in self._commit(version).added]
            frame = frame.where(F.substring_index("_metadata.file_path", "/", -1).isin(names))
        more = self._snapshot_change(split)
        frame = frame.withColumns({name: F.lit(value) for name, value in more.items()})
        columns = [
            F.to_json(f"`{field.name}`").alias(field.name)
            if isinstance(field.dataType, VariantType)
            else F.col(f"`{field.name}`")
            for field in frame.schema
        ]
        wanted = self._wanted

        def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.record_batch({"payload": typed_records(batch, wanted).payloads})

        return frame.select(*columns).mapInArrow(write, "payload string")

    def backlog(self) -> Backlog:
        """Measure the versions that are not planned."""
        return backlog_of(self.discover())


def version_of(name: str) -> int:
    """The version that a split's name ends with."""
    return int(name.rsplit("-", 1)[-1])


def mark_of(path: str) -> str | None:
    """The mark in a split's path; None in those of earlier releases."""
    _, has_one, mark = path.rpartition("#")
    return mark if has_one and MARK.fullmatch(mark) else None


def is_snapshot(name: str) -> bool:
    """Returns True if a split of that name is the whole table."""
    return name.startswith("snapshot-")
