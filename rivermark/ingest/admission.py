"""The door: takes a batch of landed files, and writes each of their rows to exactly one place.

Raw first, then the verdicts: admitted, late, set aside. Each is one commit, skipped when a run
before this one made it already. A replay that finds the raw commit decides again from the raw table
and from the verdicts written beside it, never from the files, which may have changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.batch.arrow_batch import CollectedBatch
from rivermark.ingest.batch.base import ParsedBatch, Rows
from rivermark.ingest.batch.spark_batch import SpreadBatch
from rivermark.ingest.corrupt_files import damaged_files
from rivermark.ingest.file_outcomes import INGEST_FILES, FileOutcome, write_outcomes
from rivermark.ingest.file_statistics import FileFacts
from rivermark.ingest.file_watermarks import judge_files
from rivermark.ingest.late_rows import may_miss
from rivermark.ingest.parse.driver_parser import ParserHere
from rivermark.ingest.parse.parser import Head, Parser, is_record
from rivermark.ingest.source.driver_reader import lines_of
from rivermark.ingest.source.spark_reader import Arrived, read_files, uri_of
from rivermark.ingest.watermark import Verdict
from rivermark.ingest.watermark_recovery import recall_clock
from rivermark.lake.batch_writer import Origin, TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.contract import QUARANTINE_ARROW
from rivermark.model.file_source import weight_of
from rivermark.model.stream import Ingest

COLLECTED_BYTES: Final = 48 << 20
"""Batches of files up to this size (Parquet and gzip counted eightfold) come to the driver."""

KNOWN: Final = pa.schema(
    [
        ("_file", pa.string()),
        ("_ingest_batch", pa.int64()),
        ("_arrival", pa.int32()),
        ("_landed_at", pa.timestamp("us", "UTC")),
        ("_ingested_at", pa.timestamp("us", "UTC")),
        ("_format", pa.string()),
        ("_columns", pa.string()),
        ("_head", pa.string()),
    ]
)
"""What is known of a file before its first row is read. Data and not literals: a literal
becomes part of the generated code, which would then be compiled anew for every batch."""

ARROW_ROWS: Final = 200_000
"""Up to so many rows a table the driver commits them itself, without a Spark job: measured 5 ms of
CPU a commit against 150 ms and more. Beyond, memory counts and executors write."""


@dataclass
class Admission:
    """What the door did with one batch: rows = admitted + late + quarantined."""

    batch: int
    files: int
    rows: int = 0
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    newest: datetime | None = None
    outcomes: list[FileOutcome] = field(default_factory=list)

    def add(self, outcome: FileOutcome) -> None:
        """Count a file in."""
        self.outcomes.append(outcome)
        self.rows += outcome.rows
        self.admitted += outcome.admitted
        self.late += outcome.late
        self.quarantined += outcome.quarantined


class Door:
    """The door of one ingest within one run."""

    def __init__(self, spark: SparkSession, lake: Lake, ingest: Ingest, origin: Origin) -> None:
        """Create the tables where needed, and recall how far event time had come."""
        self._spark = spark
        self._lake = lake
        self.ingest = ingest
        self._parser = Parser(ingest.contract, ingest.source.delimiter)
        self._here = ParserHere(spark, self._parser)
        for table in (*ingest.tables, INGEST_FILES):
            create_table(lake, table)
        self._raw = TableWriter(lake, ingest.raw, origin)
        if self._raw.last is not None:
            # What follows the raw commit of a batch cannot be older. Without this bound a table
            # that is rarely written to could prove nothing once its log was trimmed.
            origin = replace(origin, since=self._raw.last.at)
        self._admitted = TableWriter(lake, ingest.admitted, origin)
        self._late = TableWriter(lake, ingest.late, origin)
        self._quarantine = TableWriter(lake, ingest.quarantine, origin)
        self._files = TableWriter(lake, INGEST_FILES, origin)
        # Rows and whole files are set aside by two commits: a crash between them loses neither.
        self._whole_files = TableWriter(
            lake, ingest.quarantine, replace(origin, stream=f"{origin.stream}:files")
        )
        self.collected_bytes = COLLECTED_BYTES
        self.clock = recall_clock(lake, ingest)

    def admit(self, files: Sequence[Arrived], batch: int) -> Admission:
        """Take the files of one batch through the door; safe to call again with the same batch."""
        ordered = sorted(files, key=lambda f: (f.arrival, f.modified_at, f.path))
        if not self._raw.has(batch):
            return self._first(ordered, batch)
        kept = self._raw.metadata_of(batch)
        if kept is None:
            return Admission(
                batch, len(files)
            )  # A later batch is in, so nothing of this one misses.
        return self._again(ordered, batch, kept)

    def _first(self, files: list[Arrived], batch: int) -> Admission:
        result = Admission(batch, len(files))
        unread = {f.name: f.reason or "file_unreadable" for f in files if f.status != "ready"}
        now = datetime.now(UTC)
        while True:
            ready = [f for f in files if f.name not in unread]
            try:
                rows = self._read(ready, now)
                facts = rows.facts()
            except Exception:
                damaged = self._damaged(ready, now)
                if not damaged:
                    raise
                unread |= damaged
                continue
            try:
                names = [f.name for f in ready]
                verdicts, after = judge_files(names, facts, rows, self.clock, self.ingest)
                metadata = {
                    "clock": after.to_json(),
                    "verdicts": {name: v.to_json() for name, v in verdicts.items()},
                    "unread": unread,
                    "at": now.isoformat(),
                }
                count = sum(f.rows for f in facts.values())
                self._write(self._raw, rows.raw(), count, batch, metadata)
                self.clock = after
                self._decide(rows, files, facts, verdicts, unread, result, now)
            finally:
                rows.close()
            return result

    def _again(self, files: list[Arrived], batch: int, kept: dict[str, Any]) -> Admission:
        """Repeat the decisions of a batch whose raw rows are committed already."""
        result = Admission(batch, len(files))
        verdicts = {name: Verdict.from_json(v) for name, v in kept["verdicts"].items()}
        first, last = min(f.arrival for f in files), max(f.arrival for f in files)
        raw = self._spark.read.format("delta").load(self._lake.path(self.ingest.raw))
        lines = raw.where(F.col("_ingest_batch").between(first, last)).withColumns(
            {"_record": F.lit(True), "_part": F.lit(0), "_mid": F.col("_row")}
        )
        rows = self._open(lines, [f for f in files if f.name in verdicts])
        try:
            now = datetime.fromisoformat(kept["at"])
            self._decide(rows, files, rows.facts(), verdicts, kept["unread"], result, now)
        finally:
            rows.close()
        return result

    def _read(self, files: list[Arrived], now: datetime) -> ParsedBatch:
        """Read and parse the files: small text ones here, all others by a Spark job."""
        lines = lines_of(files, self.ingest.source) if self.collected_bytes else None
        if lines is None:
            return self._open(self._lines(files, now), files)
        known = self._known(files, now)
        numbers = [n for each in lines for n in range(1, len(each) + 1)]
        mine = pa.array([code for code, each in enumerate(lines) for _ in each], pa.int32())
        table = (
            known.take(mine)
            .append_column("_row", pa.array(numbers, pa.int64()))
            .append_column(
                "payload", pa.array([text for each in lines for text in each]).cast("string")
            )
        )
        heads = {Head(f.format, f.columns) for f in files}
        return CollectedBatch(self._here.parse(table, heads), self.ingest)

    def _damaged(self, files: list[Arrived], now: datetime) -> dict[str, str]:
        def parse(file: Arrived) -> None:
            rows = self._open(self._lines([file], now), [file])
            try:
                rows.facts()
            finally:
                rows.close()

        return damaged_files(self._spark, files, self.ingest.source, parse)

    def _open(self, lines: DataFrame, files: list[Arrived]) -> ParsedBatch:
        """Parse the lines; a batch of everyday size comes to the driver, a large one stays out."""
        heads = {Head(f.format, f.columns) for f in files}
        parsed = self._parser.parse(lines, heads)
        small = sum(weight_of(f.name, f.format, f.size) for f in files) <= self.collected_bytes
        if small:
            return CollectedBatch(parsed.toArrow(), self.ingest)
        return SpreadBatch(parsed, self.ingest)

    def _lines(self, files: list[Arrived], now: datetime) -> DataFrame:
        """Every line of the files, with what is known of its file beside it."""
        uris = pa.array([uri_of(self._spark, f.path) for f in files], pa.string())
        facts = self._known(files, now).append_column("_uri", uris)
        known = self._spark.createDataFrame(facts)
        rows = read_files(self._spark, files, self.ingest.source)
        return rows.join(F.broadcast(known), "_uri").withColumn("_record", is_record())

    def _known(self, files: list[Arrived], now: datetime) -> pa.Table:
        facts = [
            {
                "_file": f.name,
                "_ingest_batch": f.arrival,
                "_arrival": f.arrival,
                "_landed_at": f.landed_at,
                "_ingested_at": now,
                "_format": f.format,
                "_columns": f.columns,
                "_head": f.head,
            }
            for f in files
        ]
        return pa.Table.from_pylist(facts, KNOWN)

    def _decide(
        self,
        rows: ParsedBatch,
        files: list[Arrived],
        facts: dict[str, FileFacts],
        verdicts: dict[str, Verdict],
        unread: dict[str, str],
        result: Admission,
        now: datetime,
    ) -> None:
        """Send each row to the admitted, the late or the quarantine table, and count."""
        bounds = {n: v for n, v in verdicts.items() if may_miss(facts.get(n), v)}
        missed = rows.judge(bounds)
        for file in files:
            if file.name in unread:
                result.add(FileOutcome.unread(file, unread[file.name]))
                continue
            found = facts.get(file.name, FileFacts())
            late, ahead = missed.get(file.name, (0, 0))
            aside = found.quarantined + ahead
            result.add(FileOutcome(file, found.rows, found.rows - aside - late, late, aside))
        result.newest = self.clock.newest
        batch = result.batch
        if result.admitted:
            self._write(self._admitted, rows.admitted(), result.admitted, batch)
        if result.late:
            self._write(self._late, rows.late(), result.late, batch)
        if result.quarantined:
            self._write(self._quarantine, rows.set_aside(), result.quarantined, batch)
        if unread:
            self._set_files_aside(result, now)
        write_outcomes(self._files, self.ingest.name, batch, result.outcomes)

    def _set_files_aside(self, result: Admission, now: datetime) -> None:
        """Write one row for each file that could not be read as a whole."""
        rows = [
            {
                "_file": o.file.name,
                "_ingest_batch": o.file.arrival,
                "_ingested_at": now,
                "reasons": [o.reason],
                "details": f"{o.file.size} bytes",
            }
            for o in result.outcomes
            if o.reason
        ]
        table = pa.Table.from_pylist(rows, QUARANTINE_ARROW)
        self._write(self._whole_files, table, len(rows), result.batch)

    def _write(
        self,
        writer: TableWriter,
        rows: Rows,
        count: int,
        batch: int,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Commit, once. What is small goes through the driver."""
        if writer.has(batch):
            return
        if isinstance(rows, DataFrame) and count <= ARROW_ROWS:
            rows = rows.toArrow()
        writer.append_once(rows, batch, metadata=metadata)
