"""Admission: takes a batch of splits, and writes each of their rows to exactly one table.

Raw rows come first, then the admitted, the late and the quarantined ones. Each is one commit,
skipped when a run before this one made it already. The table of a lookup is merged after them,
which may be done again. A replay that finds the raw commit reads the
raw table and repeats the decision recorded beside it; it never reads the source, which may have
changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.attempts import DEATHS, Attempts
from rivermark.ingest.batch.arrow_batch import ArrowBatch
from rivermark.ingest.batch.base import ParsedBatch, Rows
from rivermark.ingest.batch.spark_batch import SparkBatch
from rivermark.ingest.decision import Decision, ReadBatch, decide
from rivermark.ingest.executors import lines_on_executors
from rivermark.ingest.late_rows import may_exceed
from rivermark.ingest.lines import LINES, KnownSplits, read_numbered
from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.parse.contract_parser import ContractParser, contract_faults
from rivermark.ingest.parse.expressions import expression_faults
from rivermark.ingest.parse.on_executors import parsed_on_executors
from rivermark.ingest.parse.rules import column_rules_of
from rivermark.ingest.spark_internals import engine_is_alive
from rivermark.ingest.split_outcomes import INGEST_FILES, SplitOutcome, write_outcomes
from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark_recovery import recover_watermark
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import DeclarationError, RecordsLost
from rivermark.model.sink import Origin
from rivermark.model.source import (
    PIECE_BYTES,
    Columns,
    Piece,
    PlannedSplit,
    Records,
    SourceReader,
    placed,
)
from rivermark.model.stream import Ingest

COLLECTED_BYTES: Final = 48 << 20
"""Batches up to this size as text come to the driver."""
MOST_HELD: Final = 512 << 20
"""The same for the lines as they are held, each with its file's name and columns."""
NO_SPLITS: Final[Mapping[str, str]] = {}

ARROW_ROWS: Final = 200_000
"""Up to so many rows a table the driver commits them itself, without a Spark job: measured 5 ms of
CPU a commit against 150 ms and more. Beyond, memory counts and executors write."""


@dataclass(frozen=True)
class AdmissionResult:
    """Result of one batch: rows = admitted + late + quarantined; `files` counts its splits.

    `newest` is the newest event time so far (UTC).
    """

    batch: int
    files: int
    rows: int = 0
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    newest: datetime | None = None


class Admission:
    """Admits the rows of one ingest within one run."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        ingest: Ingest,
        source: SourceReader,
        origin: Origin,
    ) -> None:
        self.ingest = ingest
        self._spark = spark
        self._lake = lake
        self._source = source
        try:
            self._parser = ContractParser(ingest.contract, ingest.source.delimiter)
        except DeclarationError:
            for fault in contract_faults(ingest.name, ingest.contract):
                raise fault from None
            raise
        for table in (*ingest.tables, INGEST_FILES):
            create_table(lake, table)
        self._raw = TableWriter(lake, ingest.raw, origin)
        if self._raw.last is not None:
            # What follows the raw commit of a batch cannot be older. Without this bound a table
            # that is rarely written to could prove nothing once its log was trimmed.
            origin = replace(origin, since=self._raw.last.at)
        self._admitted = TableWriter(lake, ingest.versions, origin)
        self._lookup = LookupTable(lake, ingest) if ingest.kind == "lookup" else None
        self._late = TableWriter(lake, ingest.late, origin)
        self._quarantine = TableWriter(lake, ingest.quarantine, origin)
        self._outcomes = TableWriter(lake, INGEST_FILES, origin)
        # Rows and whole splits are quarantined by two commits: a crash between them loses neither.
        self._whole_splits = TableWriter(
            lake, ingest.quarantine, replace(origin, stream=f"{origin.stream}:files")
        )
        self._attempts = Attempts(
            f"{lake.root}/checkpoints/{ingest.name}/attempts.json", origin.generation
        )
        self.collected_bytes = COLLECTED_BYTES
        self.progress = recover_watermark(lake, ingest)

    def admit(self, splits: Sequence[PlannedSplit], batch: int) -> AdmissionResult:
        """Admit the rows of the splits; safe to call again with the same batch."""
        ordered = sorted(splits, key=lambda s: (s.batch, s.modified_at, s.path))
        recorded = self._raw.metadata_of(batch)
        if self._raw.has(batch) and recorded is None:
            # A later batch is in the tables, so nothing of this one is missing.
            return AdmissionResult(batch, len(splits))
        if recorded is not None:
            read = self._read_raw(ordered, Decision.from_json(recorded))
            return self._decided(read, ordered, batch, recorded)
        deaths = self._attempts.begin(batch)
        try:
            deadly = self._isolated(ordered) if deaths >= DEATHS else {}
            return self._decided(self.read(ordered, deadly), ordered, batch, None)
        except BaseException as error:
            if not self._ended(error):
                self._attempts.give_up()
            raise

    def _decided(
        self,
        read: ReadBatch,
        ordered: Sequence[PlannedSplit],
        batch: int,
        recorded: dict[str, Any] | None,
    ) -> AdmissionResult:
        """Decide about a batch that was read, unless that is recorded, and write its rows."""
        with closing(read.rows):
            decision = (
                decide(read, self.progress, self.ingest)
                if recorded is None
                else Decision.from_json(recorded)
            )
            result = self._commit(read, decision, ordered, batch)
        self.progress = decision.progress
        self._source.committed(read.splits)
        return result

    def _ended(self, error: BaseException) -> bool:
        """Whether an error is the end of the engine, or of its memory."""
        return "OutOfMemory" in str(error) or not engine_is_alive(self._spark)

    def _isolated(self, splits: Sequence[PlannedSplit]) -> dict[str, str]:
        """The splits that end the engine, with the reason for each: each is read alone."""
        now = datetime.now(UTC)
        ready = [split for split in splits if split.status == "ready"]

        def read(split: PlannedSplit) -> None:
            try:
                rows, _ = self._parse([split], now)
            except Exception as error:
                # Any other error is found again, and named, when the batch is read.
                if self._ended(error):
                    raise
            else:
                rows.close()

        return self._attempts.isolate(ready, read)

    def read(
        self, splits: Sequence[PlannedSplit], deadly: Mapping[str, str] = NO_SPLITS
    ) -> ReadBatch:
        """Read and parse the splits; those that cannot be read do not keep the others out.

        `deadly` are splits that are not to be read, with the reason for each.
        """
        unreadable = {s.name: s.reason or "file_unreadable" for s in splits if s.status != "ready"}
        unreadable |= deadly
        now = datetime.now(UTC)
        while True:
            ready = [s for s in splits if s.name not in unreadable]
            try:
                rows, statistics = self._parse(ready, now)
            except RecordsLost as error:
                raise error.of_stream(self.ingest.name) from error
            except Exception as error:
                if isinstance(error, AnalysisException):
                    self._refuse_expressions()
                damaged = self._source.diagnose(
                    self._spark, ready, lambda split: self._parse_alone(split, now)
                )
                if not damaged:
                    raise
                unreadable |= damaged
            else:
                return ReadBatch(ready, rows, statistics, unreadable, now)

    def _refuse_expressions(self) -> None:
        """Raise DeclarationError where a rule of the contract is no expression."""
        for fault in expression_faults(self._spark, self.ingest.name, self.ingest.contract):
            raise fault

    def _read_raw(self, splits: Sequence[PlannedSplit], decision: Decision) -> ReadBatch:
        """Read the rows of a batch whose raw rows are committed already."""
        first, last = min(s.batch for s in splits), max(s.batch for s in splits)
        raw = read_delta(self._spark, self._lake.path(self.ingest.raw))
        lines = raw.where(F.col("_ingest_batch").between(first, last))
        ready = [s for s in splits if s.name in decision.bounds]
        names = F.coalesce(F.sum(F.octet_length("_columns")), F.lit(0))
        if self._is_small(ready) and lines.agg(names).collect()[0][0] <= MOST_HELD:
            numbered = lines.withColumn("_head", F.lit(None).cast("string"))
            rows, statistics = counted(self._arrow_batch(numbered.toArrow()))
        else:
            places = {"_head": F.lit(None).cast("string"), "_part": F.lit(0), "_mid": F.col("_row")}
            rows, statistics = counted(self._spark_batch(lines.withColumns(places)))
        return ReadBatch(ready, rows, statistics, decision.unreadable, decision.at)

    def _parse(
        self, splits: Sequence[PlannedSplit], now: datetime, *, on_spark: bool = False
    ) -> tuple[ParsedBatch, dict[str, SplitStatistics]]:
        """Read and parse the splits: small ones in the driver, all others by a Spark job."""
        pieces = self._source.pieces(self._spark, splits, PIECE_BYTES)
        known = KnownSplits.of(splits, now, self._is_head)
        if not on_spark and sum(piece.weight for piece in pieces) <= self.collected_bytes:
            parsed = self._parsed_in_driver(pieces, known)
            if parsed is not None:
                return counted(parsed)
        lines = lines_on_executors(self._spark, pieces, known)
        places = {"_part": F.lit(0), "_mid": F.col("_row")}
        return counted(self._spark_batch(lines.withColumns(places)))

    def _parsed_in_driver(self, pieces: Sequence[Piece], known: KnownSplits) -> ArrowBatch | None:
        """The lines of pieces that are read in the driver; None where they are too many for it."""
        read: list[Records] = []
        held = 0
        for records in read_numbered(pieces, self._source.read):
            held += known.nbytes(records)
            if held > MOST_HELD:
                return None
            read.append(records)
        lines = pa.concat_tables([LINES.empty_table(), *map(known.lines, read)])
        return self._arrow_batch(lines, placed((r.rows.num_rows, r.columns) for r in read))

    def _is_head(self, split: PlannedSplit) -> bool:
        """Whether a CSV header has all required columns.

        One without is no header: its line is quarantined with the others, because it may be the
        first record of a file that has none.
        """
        return self._parser.can_admit(json.loads(split.columns or "[]"))

    def _arrow_batch(self, lines: pa.Table, known: Sequence[Columns] = ()) -> ArrowBatch:
        parsed = self._parser.parse(lines, known)
        return ArrowBatch(column_rules_of(self._spark, parsed, self.ingest.contract), self.ingest)

    def _spark_batch(self, lines: DataFrame) -> SparkBatch:
        return SparkBatch(parsed_on_executors(self._parser, lines), self.ingest)

    def _parse_alone(self, split: PlannedSplit, now: datetime) -> None:
        rows, _ = self._parse([split], now, on_spark=True)
        rows.close()

    def _is_small(self, splits: Sequence[PlannedSplit]) -> bool:
        return 0 < sum(split.weight for split in splits) <= self.collected_bytes

    def _commit(
        self,
        read: ReadBatch,
        decision: Decision,
        splits: Sequence[PlannedSplit],
        batch: int,
    ) -> AdmissionResult:
        """Write each row to the table that the decision sends it to, and count."""
        rows, statistics = read.rows, read.statistics
        bounds = decision.bounds
        rows.carry(bounds)
        marked = rows.mark({n: b for n, b in bounds.items() if may_exceed(statistics.get(n), b)})
        outcomes = [
            SplitOutcome(split, reason=decision.unreadable[split.name])
            if split.name in decision.unreadable
            else replace(
                outcome_of(split, statistics.get(split.name), *marked.get(split.name, (0, 0))),
                skipped=decision.skipped.get(split.name, 0),
            )
            for split in splits
        ]
        result = AdmissionResult(
            batch,
            len(splits),
            rows=sum(o.rows for o in outcomes),
            admitted=sum(o.admitted for o in outcomes),
            late=sum(o.late for o in outcomes),
            quarantined=sum(o.quarantined for o in outcomes),
            newest=decision.progress.newest,
        )
        write(self._raw, rows.raw, result.rows, batch, decision.to_json())
        for writer, select, count in (
            (self._admitted, rows.admitted, result.admitted),
            (self._late, rows.late, result.late),
            (self._quarantine, rows.quarantined, result.quarantined),
        ):
            if count:
                write(writer, select, count, batch)
        if self._lookup is not None and result.admitted:
            versions = rows.admitted()
            versions = versions if isinstance(versions, pa.Table) else versions.toArrow()
            names = [split.name for split in splits]
            self._lookup.merge(versions, names, self._described(batch))
        whole = [o for o in outcomes if o.reason]
        if whole:
            write(self._whole_splits, lambda: self._whole(whole, decision.at), len(whole), batch)
        write_outcomes(self._outcomes, self.ingest.name, batch, outcomes)
        return result

    def _described(self, batch: int) -> dict[str, Any]:
        """What a commit beside those of the writers says of itself."""
        origin = self._admitted.origin
        return {
            "stream": origin.stream,
            "generation": origin.generation,
            "batch": batch,
            "run": origin.run_id,
        }

    def _whole(self, outcomes: Sequence[SplitOutcome], at: datetime) -> pa.Table:
        """One quarantined row for each split that could not be read as a whole."""
        rows = [
            {
                "_file": o.split.name,
                "_ingest_batch": o.split.batch,
                "_ingested_at": at,
                "reasons": [o.reason],
                "details": f"{o.split.size} bytes",
            }
            for o in outcomes
        ]
        return rows_of(self.ingest.quarantine, rows)


def counted(rows: ParsedBatch) -> tuple[ParsedBatch, dict[str, SplitStatistics]]:
    """The batch with its statistics; a batch that cannot be evaluated is released."""
    try:
        return rows, rows.statistics()
    except Exception:
        rows.close()
        raise


def outcome_of(
    split: PlannedSplit, statistics: SplitStatistics | None, late: int, ahead: int
) -> SplitOutcome:
    """Where the rows of a split go, given how many are late and how many ahead of the stream."""
    rows = statistics.rows if statistics else 0
    quarantined = ahead + (statistics.quarantined if statistics else 0)
    return SplitOutcome(split, rows, rows - quarantined - late, late, quarantined)


def write(
    writer: TableWriter,
    select: Callable[[], Rows],
    count: int,
    batch: int,
    metadata: dict[str, Any] | None = None,
) -> None:
    """Commit the selected rows, once. What is small goes through the driver."""
    if writer.has(batch):
        return
    rows = select()
    if isinstance(rows, DataFrame) and count <= ARROW_ROWS:
        rows = rows.toArrow()
    writer.append_once(rows, batch, metadata=metadata)
