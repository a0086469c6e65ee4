"""The door: takes a batch of landed files, and writes each of their rows to exactly one place.

Raw first, then the verdicts: admitted, late, set aside. Each is one commit, skipped when a run
before this one made it already. A replay that finds the raw commit decides again from the raw table
and from the verdicts written beside it, never from the files, which may have changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.admission.batch import INGEST_FILES, FileOutcome, write_outcomes
from rivermark.admission.clock import Clock, Verdict, judge, utc
from rivermark.admission.contract import META, QUARANTINE_SCHEMA, RAW_SCHEMA
from rivermark.admission.facts import FileFacts, gather, line_numbers
from rivermark.admission.isolate import damaged_files
from rivermark.admission.parse import DETAILS, PROBLEMS, Head, parse
from rivermark.admission.recall import recall_clock
from rivermark.admission.verdicts import count_missed, judged, may_miss
from rivermark.lake.create import create_table
from rivermark.lake.lake import Lake
from rivermark.lake.writer import Origin, TableWriter
from rivermark.sources.reading import Arrived, read_files, uri_of
from rivermark.stream import Ingest

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
        for table in (*ingest.tables, INGEST_FILES):
            create_table(lake, table)
        self._raw = TableWriter(lake, ingest.raw, origin)
        self._admitted = TableWriter(lake, ingest.admitted, origin)
        self._late = TableWriter(lake, ingest.late, origin)
        self._quarantine = TableWriter(lake, ingest.quarantine, origin)
        self._files = TableWriter(lake, INGEST_FILES, origin)
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
            parsed = self._parse(self._lines(ready), ready)
            parsed.persist()
            try:
                facts, parts = gather(parsed, self.ingest.contract.event_time)
                verdicts, after = self._judge(ready, facts, parsed)
                numbered = parsed.withColumn("_row", line_numbers(parts)) if parts else parsed
                rows = numbered.where("_record").withColumn("_ingested_at", F.lit(now))
                raw = rows.select(*RAW_SCHEMA.fieldNames())
                metadata = {
                    "clock": after.to_json(),
                    "verdicts": {name: v.to_json() for name, v in verdicts.items()},
                    "unread": unread,
                    "at": now.isoformat(),
                }
                self._write(self._raw, raw, sum(f.rows for f in facts.values()), batch, metadata)
                self.clock = after
                self._decide(rows, files, facts, verdicts, unread, result, now)
                return result
            except Exception:
                damaged = {} if self._raw.has(batch) else self._damaged(ready)
                if not damaged:
                    raise
                unread |= damaged
            finally:
                parsed.unpersist()

    def _again(self, files: list[Arrived], batch: int, kept: dict[str, Any]) -> Admission:
        """Repeat the decisions of a batch whose raw rows are committed already."""
        result = Admission(batch, len(files))
        verdicts = {name: Verdict.from_json(v) for name, v in kept["verdicts"].items()}
        first, last = min(f.arrival for f in files), max(f.arrival for f in files)
        raw = self._spark.read.format("delta").load(self._lake.path(self.ingest.raw))
        lines = raw.where(F.col("_ingest_batch").between(first, last)).withColumns(
            {"_record": F.lit(True), "_part": F.lit(0), "_mid": F.col("_row")}
        )
        parsed = self._parse(lines, [f for f in files if f.name in verdicts])
        parsed.persist()
        try:
            facts, _ = gather(parsed, self.ingest.contract.event_time)
            now = datetime.fromisoformat(kept["at"])
            self._decide(parsed, files, facts, verdicts, kept["unread"], result, now)
        finally:
            parsed.unpersist()
        return result

    def _damaged(self, files: list[Arrived]) -> dict[str, str]:
        return damaged_files(self._spark, files, self.ingest.source)

    def _parse(self, lines: DataFrame, files: list[Arrived]) -> DataFrame:
        heads = {Head(f.format, f.columns) for f in files}
        return parse(lines, heads, self.ingest.contract, self.ingest.source.delimiter)

    def _lines(self, files: list[Arrived]) -> DataFrame:
        """Every line of the files, with what is known of its file beside it."""
        known = self._spark.createDataFrame(
            [
                (
                    uri_of(self._spark, f.path),
                    f.name,
                    f.arrival,
                    f.arrival,
                    f.landed_at,
                    f.format,
                    f.columns,
                    f.head,
                )
                for f in files
            ],
            "_uri string, _file string, _ingest_batch long, _arrival int, _landed_at timestamp, "
            "_format string, _columns string, _head string",
        )
        rows = read_files(self._spark, files, self.ingest.source)
        bare = F.regexp_replace("payload", "^\ufeff", "")
        record = (F.trim("payload") != "") & ~F.coalesce(bare == F.col("_head"), F.lit(False))
        return rows.join(F.broadcast(known), "_uri").withColumn("_record", record)

    def _judge(
        self, files: list[Arrived], facts: dict[str, FileFacts], parsed: DataFrame
    ) -> tuple[dict[str, Verdict], Clock]:
        """Judge the files in their order of arrival, each by the clock that the one before left."""
        contract, clock = self.ingest.contract, self.clock
        verdicts: dict[str, Verdict] = {}
        for file in files:
            found = facts.get(file.name, FileFacts())
            below = found.newest
            if contract.max_jump and clock.newest and found.newest:
                ceiling = clock.newest + contract.max_jump
                below = (
                    found.newest if found.newest <= ceiling else self._newest(parsed, file, ceiling)
                )
            verdicts[file.name], clock = judge(
                clock, found.oldest, below, found.newest, self.ingest.lateness, contract.max_jump
            )
        return verdicts, clock

    def _newest(self, parsed: DataFrame, file: Arrived, ceiling: datetime) -> datetime | None:
        """The newest valid event time of a file that does not lie beyond the ceiling."""
        time = self.ingest.contract.event_time
        mine = (F.col("_file") == file.name) & F.col("_record") & (F.size(PROBLEMS) == 0)
        row = parsed.where(mine & (F.col(time) <= F.lit(ceiling))).agg(F.max(time)).first()
        return utc(row[0]) if row else None

    def _decide(
        self,
        rows: DataFrame,
        files: list[Arrived],
        facts: dict[str, FileFacts],
        verdicts: dict[str, Verdict],
        unread: dict[str, str],
        result: Admission,
        now: datetime,
    ) -> None:
        """Send each row to the admitted, the late or the quarantine table, and count."""
        time = self.ingest.contract.event_time
        bounds = {n: v for n, v in verdicts.items() if may_miss(facts.get(n), v)}
        marked = judged(rows, time, bounds)
        missed = count_missed(marked) if bounds else {}
        for file in files:
            if file.name in unread:
                result.add(FileOutcome.unread(file, unread[file.name]))
                continue
            found = facts.get(file.name, FileFacts())
            late, ahead = missed.get(file.name, (0, 0))
            aside = found.quarantined + ahead
            result.add(FileOutcome(file, found.rows, found.rows - aside - late, late, aside))
        result.newest = self.clock.newest
        columns = self.ingest.admitted.schema.fieldNames()
        good = F.size(PROBLEMS) == 0
        admitted = marked.where(good & ~F.col("_ahead") & ~F.col("_is_late")).select(*columns)
        self._write(self._admitted, admitted, result.admitted, result.batch)
        by = F.unix_millis("_watermark") - F.unix_millis(time)
        late_rows = marked.where("_is_late").withColumn("_late_by_ms", by)
        late_columns = self.ingest.late.schema.fieldNames()
        self._write(self._late, late_rows.select(*late_columns), result.late, result.batch)
        self._set_aside(marked, result, now)
        write_outcomes(self._files, self.ingest.name, result.batch, result.outcomes)

    def _set_aside(self, marked: DataFrame, result: Admission, now: datetime) -> None:
        """Write the rows that were set aside, and one row for each file that could not be read."""
        good = F.size(PROBLEMS) == 0
        reasons = F.when(F.col("_ahead"), F.array(F.lit("event_time_ahead_of_stream")))
        rows = marked.where(~good | F.col("_ahead")).select(
            *[m.name for m in META],
            F.coalesce(reasons, F.col(PROBLEMS)).alias("reasons"),
            F.col(DETAILS).alias("details"),
            F.col(self.ingest.contract.event_time).alias("event_time"),
            "payload",
        )
        unread = [
            (o.file.name, None, o.file.arrival, now, [o.reason], f"{o.file.size} bytes", None, None)
            for o in result.outcomes
            if o.reason
        ]
        if unread:
            rows = rows.unionByName(self._spark.createDataFrame(unread, QUARANTINE_SCHEMA))
        self._write(self._quarantine, rows, result.quarantined + len(unread), result.batch)

    def _write(
        self,
        writer: TableWriter,
        rows: DataFrame,
        count: int,
        batch: int,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Commit, unless there is nothing to say: raw always speaks, since it carries the clock."""
        if writer.has(batch) or (count == 0 and writer is not self._raw):
            return
        writer.append_once(
            rows.toArrow() if count <= ARROW_ROWS else rows, batch, metadata=metadata
        )
