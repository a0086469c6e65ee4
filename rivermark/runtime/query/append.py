"""The query of a stream whose rows are final when they appear: windows, joins, cleansing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.delta import delta_stream
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.rows_in_files import InFiles
from rivermark.lake.schema import create_table
from rivermark.lake.statistics import largest
from rivermark.model.rows import BatchRows, Collected
from rivermark.model.sink import owned
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table
from rivermark.operators.reach import BuildReach, collecting
from rivermark.quality.publish_gate import audit
from rivermark.runtime.batch_metrics import BatchResult
from rivermark.runtime.checkpoint.batch_rows import keep_files, keep_rows, kept_files, kept_rows
from rivermark.runtime.checkpoint.generation import newest_entry
from rivermark.runtime.checkpoint.identity import check_plan
from rivermark.runtime.checkpoint.watermarks import (
    batch_to_close,
    batch_watermark,
    last_reached,
    plan_closing_batch,
    reached,
)
from rivermark.runtime.query.backlog import most_bytes
from rivermark.runtime.query.base import QueryHost, Watermark
from rivermark.runtime.query.batch_proof import BatchProof
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.columns import check_columns
from rivermark.runtime.query.finality import check_margin
from rivermark.runtime.query.static_tables import StaticTables
from rivermark.runtime.spark.computed import computed
from rivermark.runtime.spark.joins import (
    check_joins,
    check_watermarks,
    has_join,
    keep_null_keys_apart,
)
from rivermark.runtime.spark.watermarks import moving, run_by, with_watermark
from rivermark.settings import Settings
from rivermark.sinks.output import OutputWriter

STORES = {
    "heap": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}

EMPTY_BATCHES: Final = "spark.sql.streaming.noDataMicroBatches.enabled"
"""Spark's setting for batches without data, which close what the watermark has passed."""
Parts: TypeAlias = "list[tuple[OutputWriter, BatchRows]]"
"""A batch by output."""


class CheckpointWatermark(Watermark):
    """As the checkpoint and the statistics of the inputs tell it."""

    def __init__(self, lake: Lake, stream: Stream, checkpoint: str) -> None:
        self._lake = lake
        self._stream = stream
        self._checkpoint = checkpoint

    def reached(self) -> datetime | None:
        """The watermark of the last batch that was finished."""
        return last_reached(self._lake, self._stream)

    def after(self, batch: int) -> datetime | None:
        """The moment up to which all results are written."""
        return reached(self._checkpoint, self._stream, batch)

    def of_inputs(self) -> dict[str, datetime]:
        """The oldest of them holds the results back."""
        tables = [table_of(read) for read in self._stream.reads]
        if len(tables) < 2:
            return {}
        newest = {t.name: largest(self._lake, t, moving(t)) for t in tables}
        return {name: at for name, at in newest.items() if isinstance(at, datetime)}


class AppendHost(QueryHost):
    """Hosts an append stream: one query, one watermark an input, one commit a batch and table.

    With `closes_at_once` a batch closes what its own rows prove.
    """

    closes_at_once = True

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: Stream,
        run_id: str,
        check: Callable[[], None] = owned,
    ) -> None:
        super().__init__(spark, settings, stream, run_id, check)
        self.declared = stream
        self.build = stream.build
        # State store by declaration; batches without data only where they close something.
        closes = stream.volume == "results"
        self.conf |= {
            "spark.sql.streaming.stateStore.providerClass": STORES[stream.state_store],
            EMPTY_BATCHES: str(closes).lower(),
        }
        self.trigger.inputs += [self.lake.path(table_of(read)) for read in stream.reads]
        self.watermark = CheckpointWatermark(self.lake, stream, self.checkpoint)
        self._holding = [True] * len(stream.reads)
        """Which inputs hold the watermark back."""
        self._static = StaticTables(self.lake, stream)
        for table in stream.tables:
            create_table(self.lake, table)
        self._checked = False
        self._proof: BatchProof | None = None
        self._outputs = [OutputWriter(self.lake, o, self.origin) for o in stream.outputs]

    def read(self) -> DataFrame:
        """The built stream, with a column for each further condition of its outputs."""
        tables = [table_of(read) for read in self.declared.reads]
        inputs = []
        cores = self.spark.sparkContext.defaultParallelism
        most = most_bytes(self.lake, self.declared, cores)
        for table, size, holds in zip(tables, most, self._holding, strict=True):
            rows = self._read(table, size)
            inputs.append(with_watermark(self.declared, table, rows) if holds else rows)
        lookups = self._static.read(self.spark)
        with collecting(BuildReach()) as reach:
            built = apply_build(self.declared.name, self.build, *inputs, *lookups)
        if self.closes_at_once and self.declared.volume == "results":
            files = self.settings.files_per_trigger
            self._proof = BatchProof(self.lake, self.declared, self.checkpoint, files, most)
            steps = [each.step for each in reach.operators if each.kind == "window"]
            self.trigger.closes = partial(self._proof.passes_a_border, steps)
        check_columns(self.declared, built.schema)
        check_margin(self.declared, reach)
        self._checked = not has_join(built)
        if not self._checked:
            check_watermarks(built, self.declared.name)
            built = keep_null_keys_apart(built)
        self._check_meaning()
        conditions = {
            f"_to_{i}": F.coalesce(o.where(), F.lit(False))
            for i, o in enumerate(self.declared.outputs)
            if o.where is not None
        }
        return built.withColumns(conditions) if conditions else built

    def wake(self) -> None:
        """Let the query look for input, by the watermark that it will find."""
        if self._proof is not None and self.query is not None and self.clock is not None:
            store, path = filesystem(self.checkpoint)
            planned = newest_entry(store, f"{path}/offsets")
            reached = self._proof.proved()
            if reached is not None and planned is not None:
                run_by(self.query, reached, planned)
        super().wake()

    def resume(self) -> None:
        """Plan the batch that closes windows, where the query was stopped right before it."""
        if self.conf[EMPTY_BATCHES] != "true":
            return
        batch = batch_to_close(self.checkpoint)
        if batch is None:
            return
        self.origin.check()
        # The plan must not outlast the mark of the batch before it.
        self._checkpoint_sync.sync()
        plan_closing_batch(self.checkpoint, batch)

    def _check_meaning(self) -> None:
        """Refuse state that another declaration made."""
        check_plan(self.spark, self.declared, self.checkpoint)

    def _read(self, table: Table, most: int | None = None) -> DataFrame:
        """A table as a stream in the order of its commits, so many bytes a batch at most."""
        path = self.lake.path(table)
        reader = delta_stream(self.spark, path).option("skipChangeCommits", "true")
        reader = reader.option("maxFilesPerTrigger", str(self.settings.files_per_trigger))
        if most is not None:
            reader = reader.option("maxBytesPerTrigger", f"{most}b")
        if self.from_first_commit(path):
            reader = reader.option("startingVersion", "0")
        else:
            reader = reader.option("withEventTimeOrder", "true")
        return reader.load(path)

    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Write the batch's rows to the sinks of each output that takes them.

        In a bounded run they are audited before the first commit, of any table.
        """
        if not self._checked:
            check_joins(self.spark, self.declared.name)
            self._checked = True
        self._static.check()
        watermark = batch_watermark(self.checkpoint, batch)
        metadata = {"watermark": watermark.isoformat() if watermark else None}
        if all(output.has(batch) for output in self._outputs):
            # The rows are written already, but the state of this batch is not: run it into nothing.
            frame.write.format("noop").mode("append").save()
            return BatchResult(watermark=watermark)
        grows = self.declared.volume == "results"
        with computed(frame, grows=grows, again=self._again) as rows:
            if isinstance(rows, pa.Table):
                parts = self._collected(self._as_computed_first(rows, batch))
            else:
                parts = self._in_files(rows, batch)
            self._static.check()  # A table may have changed while it was read.
            if self.bounded:
                # A table that holds the rows by now, of a run that was killed, was audited then.
                self._audit([(o, part) for o, part in parts if not o.table_has(batch)])
            for output, part in parts:
                if part.count() or output.table_has(batch):
                    output.write(part, batch, metadata)
            for output, part in parts:
                output.discard(part)
        total = sum(part.count() for _, part in parts)
        return BatchResult(rows_out=total, watermark=watermark)

    def _audit(self, parts: Parts) -> None:
        try:
            audit(self.lake, self.declared, [(o.table, part.readable()) for o, part in parts])
        except BaseException:
            for _, part in parts:
                part.discard()
            raise

    def _again(self) -> None:
        """Forget what the first computation of a batch has reported."""

    def _collected(self, rows: pa.Table) -> Parts:
        parts: Parts = []
        for i, output in enumerate(self._outputs):
            conditional = output.declared.where is not None
            own = rows.filter(rows[f"_to_{i}"]) if conditional else rows
            parts.append((output, Collected(own.select(output.table.schema.fieldNames()))))
        return parts

    def _in_files(self, rows: DataFrame, batch: int) -> Parts:
        """The rows of each output as files that executors write, in its table where that appends.

        They are audited there, and committed as they are.
        """
        if any(output.table_has(batch) for output in self._outputs):
            # Whoever asks for which rows, the state of this batch is not written.
            rows.write.format("noop").mode("append").save()
            kept = kept_files(self.checkpoint, batch) if self._tells_apart else None
            if kept is not None:
                return [
                    (output, output.files_at(folder, adds))
                    for output, (folder, adds) in zip(self._outputs, kept, strict=True)
                ]
        parts: list[tuple[OutputWriter, InFiles]] = []
        for i, output in enumerate(self._outputs):
            own = rows.where(f"_to_{i}") if output.declared.where is not None else rows
            names = output.table.schema.fieldNames()
            parts.append((output, output.in_files(own.select(*names), batch)))
        if self._tells_apart:
            keep_files(self.checkpoint, batch, [(part.folder, part.adds) for _, part in parts])
        return [*parts]

    @property
    def _tells_apart(self) -> bool:
        """True if no commit of one table can say what a batch was for all that take part of it."""
        first = self._outputs[0]
        return len(self._outputs) > 1 or not (first.writes_once or not first.updates_rows)

    def _as_computed_first(self, rows: pa.Table, batch: int) -> pa.Table:
        """A batch's rows, or what it was before a kill where a table holds them already.

        Kept for what no commit of one table can say: which rows others get, or what an upsert got.
        """
        if not self._tells_apart:
            return rows
        if any(output.table_has(batch) for output in self._outputs):
            kept = kept_rows(self.checkpoint, batch)
            # Those of other columns are of code that was changed since: they fit no output.
            return kept if kept is not None and kept.schema == rows.schema else rows
        if rows.num_rows:
            keep_rows(self.checkpoint, batch, rows)
        return rows

    def stop(self, patience: float = 30.0) -> None:
        """Stop the query, then close the sinks."""
        try:
            super().stop(patience)
        finally:
            for output in self._outputs:
                output.close()
