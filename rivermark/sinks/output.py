"""The sinks of one output of a stream: opened together, written in an order that keeps promises."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, date, datetime
from typing import Any

from pyspark.sql import DataFrame

from rivermark.lake.append.by_executors import write_files
from rivermark.lake.lake import Lake
from rivermark.lake.rows_in_files import InFiles, stage
from rivermark.lake.snapshot import row_count
from rivermark.lake.written import note_first, note_written, noted
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.rows import BatchRows, Rows, as_rows
from rivermark.model.sink import BatchIdentity, Origin, Sink, SinkContext, SinkWriter, no_conflict
from rivermark.model.stream import AnyStream, Ingest, Output, Stream
from rivermark.model.table import Table
from rivermark.sinks.comparison import check_not_emptied, name_of_target
from rivermark.sinks.delta_append import AppendWriter, DeltaAppend


def sinks_of(output: Output) -> tuple[Sink, ...]:
    """Every sink of an output: the one that writes its table, then the others as declared.

    Those that write at most once come last: only then is it known that the batch is a new one and
    is kept.
    """
    own = next((sink for sink in output.sinks if sink.writes_table), DeltaAppend())
    others = [sink for sink in output.sinks if not sink.writes_table]
    return (own, *sorted(others, key=lambda s: s.delivery.guarantee == "at most once"))


def context_of(
    lake: Lake, output: Output, origin: Origin, on_conflict: Callable[[], None] = no_conflict
) -> SinkContext:
    """The context in which the sinks of an output are opened."""
    return SinkContext(
        root=lake.root,
        retention=lake.retention,
        table=output.table,
        origin=origin,
        on_conflict=on_conflict,
    )


class OutputWriter:
    """The sinks of one output, opened for a run."""

    def __init__(self, lake: Lake, output: Output, origin: Origin) -> None:
        self.declared = output
        self.table = output.table
        self._lake = lake
        self._origin = origin
        context = context_of(lake, output, origin)
        self._sinks: list[tuple[Sink, SinkWriter]] = [
            (sink, sink.open(context)) for sink in sinks_of(output)
        ]
        for sink, writer in self._sinks:
            # What cannot be known stops the start, not the first batch.
            self._check_not_behind(sink, writer.last())
            if writer.emptied:
                check_not_emptied(lake, output, sink, origin)

    @property
    def writes_once(self) -> bool:
        """True if the rows are read only once by all its sinks."""
        return len(self._sinks) == 1

    @property
    def updates_rows(self) -> bool:
        """True if the table keeps the newest row of a key, and not each batch as it came."""
        return self._sinks[0][0].updates_rows

    def table_has(self, batch: int) -> bool:
        """Returns True if the table holds that batch."""
        return _holds(self._sinks[0][1], batch)

    def has(self, batch: int) -> bool:
        """Returns True if nothing of that batch is left to write."""
        return all(
            _holds(writer, batch)
            for sink, writer in self._sinks
            if sink.delivery.guarantee != "at most once"
        )

    def in_files(self, rows: DataFrame, batch: int) -> InFiles:
        """Have executors write the rows of a batch, before any sink gets them.

        In the table's folder where it appends them as they are; its readers know nothing of them.
        What a table holds that appends is told by its commit, and not written again.
        """
        own = self._sinks[0][1]
        if isinstance(own, AppendWriter):
            if self.table_has(batch):
                return own.committed_files(self._origin.batch(batch))
            files = own.files()
            if files is not None:
                adds = write_files(rows, files, self.table.event_time)
                return self.files_at(files.path, adds)
        name = f"{self._origin.stream.replace('/', '.')}-{self._origin.generation}-{batch}"
        return stage(self._lake, self.table, rows, name, self.table.event_time)

    def files_at(self, folder: str, adds: Sequence[dict[str, Any]]) -> InFiles:
        """Rows of the output that `in_files` has written."""
        return InFiles(folder, self.table, adds, staged=folder != self._lake.path(self.table))

    def discard(self, rows: BatchRows) -> None:
        """Remove files that stand beside the table, once no sink of any output needs them."""
        if rows.files_in(self._lake.path(self.table)) is None:
            rows.discard()

    def write(self, rows: Rows, batch: int, metadata: Mapping[str, Any]) -> int:
        """Write a batch to each sink, and return how many rows it has.

        Called again after a kill: the sinks that hold the batch do nothing then, and those that
        write at most once are left out where the table held it before. The others get the rows
        that the table holds, which the batch may not give again.
        """
        identity = self._origin.batch(batch)
        repeated = self.table_has(batch)
        batch_rows = as_rows(rows)
        if repeated:
            batch_rows = as_rows(self._sinks[0][1].committed(batch_rows, identity))
        for sink, writer in self._sinks[1:] if repeated else self._sinks:
            if not (repeated and sink.delivery.guarantee == "at most once"):
                self._origin.check()
                name = name_of_target(self.table, sink) if _is_noted(sink) else None
                if name is not None and noted(self._lake, name, self._origin) is None:
                    before = row_count(self._lake, self.table) - batch_rows.count()
                    note_first(self._lake, name, self._origin, whole=before <= 0)
                writer.write(batch_rows, identity, metadata)
                if name is not None:
                    note_written(self._lake, name, self._origin, batch)
        return batch_rows.count()

    def _check_not_behind(self, sink: Sink, last: BatchIdentity | None) -> None:
        """Refuse a target that lacks the batch which was noted as written there."""
        if not sink.keeps_last:
            return
        batch = noted(self._lake, name_of_target(self.table, sink), self._origin)
        if batch is None or (last is not None and last.batch >= batch):
            return
        held = "no batch" if last is None or last.batch < 0 else f"batch {last.batch}"
        raise CheckpointIncompatible(
            f"stream '{self._origin.stream}': {sink.target} says that it holds {held}, and batch "
            f"{batch} was written there: it was restored from a backup, or lost its record of "
            "batches. Put it back as it was, or start over on purpose, which writes every row "
            f"again: rivermark reset {self._origin.stream}"
        )

    def close(self) -> None:
        """Close every sink's writer, also where another one's fails to."""
        with ExitStack() as stack:
            for _, writer in self._sinks:
                stack.callback(writer.close)


def _is_noted(sink: Sink) -> bool:
    """True if what was written to a target is noted: it says itself which batch it holds."""
    return sink.keeps_last or sink.delivery.guarantee == "exactly once"


def _holds(writer: SinkWriter, batch: int) -> bool:
    last = writer.last()
    return last is not None and last.batch >= batch


def replace_in_others(
    lake: Lake,
    output: Output,
    origin: Origin,
    rows: Rows,
    days: Collection[date],
    replacement: str,
) -> None:
    """Replace days in the sinks of an output besides its table, as each of them does.

    Call it before the table's days are replaced: where the table holds the new rows, every other
    sink does then, and a replacement that was killed is found unfinished.
    """
    context = context_of(lake, output, origin)
    for sink in sinks_of(output)[1:]:
        if sink.on_replace != "skips":
            with closing(sink.open(context)) as writer:
                writer.replace(as_rows(rows), days, replacement)


def side_tables(stream: Stream) -> tuple[Table, ...]:
    """Tables in the lake that sinks of a stream keep beside those that it declares."""
    return tuple(t for o in stream.outputs for sink in sinks_of(o) for t in sink.tables(o.table))


def archive_sinks(lake: Lake, stream: AnyStream, stamp: str) -> list[str]:
    """Put aside what the sinks of a stream that is reset have written; returns where it lies."""
    if isinstance(stream, Ingest):
        return []
    origin = Origin(stream.name, 0, datetime.now(UTC), stamp)
    return [
        place
        for output in stream.outputs
        for sink in sinks_of(output)
        for place in sink.archive(context_of(lake, output, origin), stamp)
    ]
