"""Admission: takes a batch of splits, and writes each of their rows to exactly one table.

Raw rows come first, then the admitted, the late and the quarantined ones. Each is one commit,
skipped when a run before this one made it already. The table of a lookup is merged after them,
which may be done again. A replay that finds the raw commit reads the
raw table and repeats the decision recorded beside it; it never reads the source, which may have
changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from rivermark.ingest.attempts import DEATHS, Attempts, engine_is_alive
from rivermark.ingest.batch.arrow_batch import ArrowBatch
from rivermark.ingest.batch.base import Kind, ParsedBatch, RowShape
from rivermark.ingest.batch.chunks import ChunkWriter, PiecesTask, raw_tasks
from rivermark.ingest.batch.executors import Executors, numbered, shared
from rivermark.ingest.batch.staged_batch import StagedBatch, divided
from rivermark.ingest.decision import AdmissionPlan, Decision, ReadBatch, decide
from rivermark.ingest.lines import NO_LINES, KnownSplits, parsed_records, read_numbered
from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.parse.contract_parser import ContractParser, contract_faults
from rivermark.ingest.parse.expressions import expression_faults
from rivermark.ingest.parse.rules import column_rules_of
from rivermark.ingest.split_outcomes import INGEST_FILES, SplitOutcome, write_outcomes
from rivermark.ingest.watermark import Progress
from rivermark.ingest.watermark_recovery import recover_watermark
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import DeclarationError, RecordsLost, RivermarkError
from rivermark.model.sink import Origin
from rivermark.model.source import PIECE_BYTES, Piece, PlannedSplit, Records, SourceReader
from rivermark.model.stream import Ingest

DRIVER_BYTES: Final = 16 << 20
"""Batches up to this size as text are read, parsed and written by the driver, in place of a job."""
DRIVER_HELD: Final = 256 << 20
"""The same for their lines as they are held: what is packed may have any number of them."""
NO_SPLITS: Final[Mapping[str, str]] = {}


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


class BatchUnreadable(RivermarkError):
    """Tasks could not read or parse some splits: the error of each, by its name."""

    def __init__(self, ingest: str, splits: Mapping[str, str]) -> None:
        self.splits = splits
        name, error = next(iter(splits.items()))
        super().__init__(f"'{name}' of '{ingest}' cannot be read: {error}")


class Admission:
    """Admits the rows of one ingest within one run."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        ingest: Ingest,
        source: SourceReader | None,
        origin: Origin,
        driver_bytes: int | None = None,
    ) -> None:
        self.ingest = ingest
        self._spark = spark
        self._lake = lake
        if source is not None:  # A replay of raw rows reads none.
            self._source = source
        try:
            self._parser = ContractParser(ingest.contract, ingest.source.delimiter)
        except DeclarationError:
            for fault in contract_faults(ingest.name, ingest.contract):
                raise fault from None
            raise
        self._executors = Executors(spark, self._parser)
        self._shape = RowShape.of(ingest)
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
        self.writers: dict[Kind, TableWriter] = {
            "raw": self._raw,
            "admitted": self._admitted,
            "late": self._late,
            "quarantined": self._quarantine,
        }
        self._outcomes = TableWriter(lake, INGEST_FILES, origin)
        # Rows and whole splits are quarantined by two commits: a crash between them loses neither.
        self._whole_splits = TableWriter(
            lake, ingest.quarantine, replace(origin, stream=f"{origin.stream}:files")
        )
        self._attempts = Attempts(
            f"{lake.root}/checkpoints/{ingest.name}/attempts.json", origin.generation
        )
        self.driver_bytes = DRIVER_BYTES if driver_bytes is None else driver_bytes
        self.progress = recover_watermark(lake, ingest)

    def admit(self, splits: Sequence[PlannedSplit], batch: int) -> AdmissionResult:
        """Admit the rows of the splits; safe to call again with the same batch."""
        ordered = sorted(splits, key=lambda s: (s.batch, s.modified_at, s.path))
        recorded = self._raw.metadata_of(batch)
        if self._raw.has(batch) and recorded is None:
            # A later batch is in the tables, so nothing of this one is missing.
            return AdmissionResult(batch, len(splits))
        if recorded is not None:
            decided = Decision.from_json(recorded)
            read = self._read_raw(ordered, decided, self._lake.path(self.ingest.raw))
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
            result = self._commit(AdmissionPlan.of(read, decision), ordered, batch)
        self.progress = decision.progress
        self._source.committed([s for s in ordered if s.name not in decision.unreadable])
        return result

    def _ended(self, error: BaseException) -> bool:
        """Returns True if an error is the end of the engine, or of its memory."""
        return "OutOfMemory" in str(error) or not engine_is_alive(self._spark)

    def _isolated(self, splits: Sequence[PlannedSplit]) -> dict[str, str]:
        """The splits that end the engine, with the reason for each: each is read alone."""
        now = datetime.now(UTC)
        ready = [split for split in splits if split.status == "ready"]

        def read(split: PlannedSplit) -> None:
            try:
                rows = self._parse([split], now)
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
            unread = {split.name: "" for split in ready}
            try:
                rows = self._parse(ready, now)
            except RecordsLost as error:
                raise error.of_stream(self.ingest.name) from error
            except Exception as error:
                if isinstance(error, AnalysisException):
                    self._refuse_expressions()
                suspected = error.splits if isinstance(error, BatchUnreadable) else unread
                damaged = self._source.diagnose(
                    self._spark,
                    [split for split in ready if split.name in suspected],
                    lambda split: self._parse_alone(split, now),
                )
                if not damaged:
                    raise
                unreadable |= damaged
            else:
                return ReadBatch(ready, rows, rows.statistics(), unreadable, now)

    def _parse_alone(self, split: PlannedSplit, now: datetime) -> None:
        try:
            self._parse([split], now, in_driver=False).close()
        except BatchUnreadable as error:
            raise ValueError(error.splits[split.name]) from error

    def _refuse_expressions(self) -> None:
        """Raise DeclarationError where a rule of the contract is no expression."""
        for fault in expression_faults(self._spark, self.ingest.name, self.ingest.contract):
            raise fault

    def decided_again(
        self, splits: Sequence[PlannedSplit], raw: str, progress: Progress
    ) -> AdmissionPlan:
        """The plan of splits whose rows lie in that raw table, after that progress."""
        read = self._read_raw(splits, None, raw)
        decision = decide(read, progress, self.ingest)
        if isinstance(read.rows, StagedBatch):
            # Tasks divide rows as they write them, by bounds that are known.
            read.rows.close()
            read = self._read_raw(splits, decision, raw)
        return AdmissionPlan.of(read, decision)

    def _read_raw(
        self, splits: Sequence[PlannedSplit], decision: Decision | None, raw: str
    ) -> ReadBatch:
        """Read the rows of splits whose raw rows are committed already.

        Without a decision only what it is made from is known of those that tasks read.
        """
        ready = [s for s in splits if decision is None or s.name in decision.bounds]
        first, last = min(s.batch for s in splits), max(s.batch for s in splits)
        tasks = raw_tasks(raw, first, last)
        rows: ParsedBatch
        if sum(split.weight for split in ready) <= self.driver_bytes:
            lines = [part for task in tasks for part in task.lines()]
            rows = self._in_memory(self._parser.parse(pa.concat_tables([NO_LINES, *lines])))
        else:
            tables = self._tables_of_tasks()
            if decision is None:
                writer = ChunkWriter(self._shape, {"admitted": tables["admitted"]})
                chunks = self._executors.written(tasks, writer)
            else:
                chunks = divided(self._executors, self._shape, tables, tasks, decision.bounds)
            rows = StagedBatch(chunks, self._executors, self._shape, tables, (first, last))
        unreadable, at = {}, datetime.now(UTC)
        if decision is not None:
            unreadable, at = dict(decision.unreadable), decision.at
        return ReadBatch(ready, rows, rows.statistics(), unreadable, at)

    def _parse(
        self, splits: Sequence[PlannedSplit], now: datetime, *, in_driver: bool = True
    ) -> ParsedBatch:
        """Read and parse the splits: small ones in the driver, all others by a Spark job."""
        pieces = self._source.pieces(self._spark, splits, PIECE_BYTES)
        known = KnownSplits.of(splits, now, self._is_head)
        if in_driver and sum(piece.weight for piece in pieces) <= self.driver_bytes:
            lines = self._read_in_driver(pieces)
            if lines is not None:
                return self._in_memory(parsed_records(lines, known, self._parser))
        first, last = min(s.batch for s in splits), max(s.batch for s in splits)
        tables = self._tables_of_tasks()
        writer = ChunkWriter(self._shape, {k: t for k, t in tables.items() if k != "late"})
        tasks = [
            PiecesTask(own, known.only(name for piece in own for name in piece.splits))
            for own in shared(numbered(self._spark, pieces), PIECE_BYTES)
        ]
        chunks = self._executors.written(tasks, writer)
        rows = StagedBatch(chunks, self._executors, self._shape, tables, (first, last))
        if unreadable := {n: e for chunk in chunks for n, e in chunk.unreadable.items()}:
            rows.close()
            raise BatchUnreadable(self.ingest.name, unreadable)
        return rows

    def _read_in_driver(self, pieces: Sequence[Piece]) -> list[Records] | None:
        """The records of pieces that are read in the driver; None where it cannot hold them."""
        read: list[Records] = []
        held = 0
        for records in read_numbered(pieces, self._source.read):
            held += records.rows.nbytes
            if held > DRIVER_HELD:
                return None
            read.append(records)
        return read

    def _in_memory(self, parsed: pa.Table) -> ArrowBatch:
        rows = column_rules_of(self._spark, parsed, self.ingest.contract)
        return ArrowBatch(rows, self._shape)

    def _tables_of_tasks(self) -> dict[Kind, TableFiles]:
        """The writers of the tables' files, for tasks.

        Raises:
            RivermarkError: A table was given what tasks cannot meet, such as a constraint.
        """
        tables: dict[Kind, TableFiles] = {}
        for kind, writer in self.writers.items():
            files = writer.files()
            if files is None:
                raise RivermarkError(
                    f"table '{writer.table.name}' has constraints, partitions or features "
                    "beyond columns, which tasks cannot write: remove them, or land smaller "
                    "files"
                )
            tables[kind] = files
        return tables

    def _is_head(self, split: PlannedSplit) -> bool:
        """Returns True if a CSV header has all required columns.

        One without is no header: its line is quarantined with the others, because it may be the
        first record of a file that has none.
        """
        return self._parser.can_admit(json.loads(split.columns or "[]"))

    def _commit(
        self, plan: AdmissionPlan, splits: Sequence[PlannedSplit], batch: int
    ) -> AdmissionResult:
        """Write each row to the table that the plan sends it to, and count."""
        rows, decision = plan.batch.rows, plan.decision
        outcomes = [plan.outcome(split) for split in splits]
        result = AdmissionResult(
            batch,
            len(splits),
            rows=sum(o.rows for o in outcomes),
            admitted=sum(o.admitted for o in outcomes),
            late=sum(o.late for o in outcomes),
            quarantined=sum(o.quarantined for o in outcomes),
            newest=decision.progress.newest,
        )
        rows.write("raw", self.writers["raw"], batch, decision.to_json())
        plan.write(self.writers, batch)
        if self._lookup is not None and result.admitted:
            names = [split.name for split in splits]
            self._lookup.merge(rows.rows("admitted"), names, self._described(batch))
        whole = [o for o in outcomes if o.reason]
        if whole:
            self._whole_splits.append_once(self._whole(whole, decision.at), batch)
        write_outcomes(self._outcomes, self.ingest.name, batch, outcomes)
        return result

    def _described(self, batch: int) -> dict[str, Any]:
        """The metadata of a commit beside those of the writers."""
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
