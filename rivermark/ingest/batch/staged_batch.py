"""A batch whose rows lie in data files that tasks have written and no commit names yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.batch.base import (
    Kind,
    Marked,
    ParsedBatch,
    RowShape,
    SplitStatistics,
    may_exceed,
)
from rivermark.ingest.batch.chunks import Chunk, ChunkWriter, RawTask
from rivermark.ingest.batch.executors import Executors
from rivermark.ingest.watermark import Bounds
from rivermark.lake.append.data_file import Tree, remove_files
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import file_batches
from rivermark.model.time import EPOCH

NO_TIME: Final = timedelta(0)
DECIDED: Final[tuple[Kind, ...]] = ("admitted", "late", "quarantined")


class StagedBatch(ParsedBatch):
    """Holds the files' actions; what bounds decide otherwise is written again from the raw files.

    A part whose rows are neither late nor ahead, as their span of event times tells, is committed
    as it was written.
    """

    def __init__(
        self,
        chunks: Sequence[Chunk],
        executors: Executors,
        shape: RowShape,
        tables: Mapping[Kind, TableFiles],
        batches: tuple[int, int],
    ) -> None:
        """Take what tasks have written of planned batches, from the first to the last of these."""
        self._chunks = [*chunks]
        self._executors = executors
        self._shape = shape
        self._tables = tables
        self._batches = batches
        self._statistics: dict[str, SplitStatistics] = {}
        for chunk in chunks:
            for name, figures in chunk.splits.items():
                self._statistics.setdefault(name, SplitStatistics()).add(figures)
        self._committed: set[Kind] = set()

    def statistics(self) -> Mapping[str, SplitStatistics]:
        """Of all parts of a split together."""
        return self._statistics

    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """By one column of the files that have rows of the split."""
        return self._latest(self._shape.time, split, ceiling)

    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """Likewise, by two columns."""
        return self._latest(self._shape.mark, split, ceiling) if self._shape.mark else None

    def _latest(self, column: str, split: str, ceiling: datetime) -> datetime | None:
        latest: datetime | None = None
        names = list(dict.fromkeys(("_file", self._shape.time, column)))
        for chunk in self._chunks:
            if split not in chunk.splits or "admitted" not in chunk.files:
                continue
            for rows in self._file("admitted", chunk, names):
                inside = pc.and_(
                    pc.equal(rows["_file"], split),
                    pc.less_equal(rows[self._shape.time], pa.scalar(ceiling)),
                )
                own = pc.max(rows[column].filter(inside)).as_py()
                latest = own if latest is None else max(latest, own or latest)
        return latest

    def _file(self, kind: Kind, chunk: Chunk, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        name = chunk.files[kind]["add"]["path"]
        return file_batches(self._tables[kind].path, name, [*columns])

    def mark(self, bounds: Mapping[str, Bounds]) -> Marked:
        """Divide again, by a job, the parts in which rows can be late or ahead."""
        again = [chunk for chunk in self._chunks if self._is_again(chunk, bounds)]
        if again:
            raw = [chunk.files["raw"]["add"]["path"] for chunk in again]
            tasks = [RawTask(self._tables["raw"].path, path, *self._batches) for path in raw]
            self._chunks += divided(self._executors, self._shape, self._tables, tasks, bounds)
            for chunk in again:
                for kind in DECIDED:
                    if kind in chunk.files:
                        remove_files(self._tables[kind].path, [chunk.files.pop(kind)])
        marked: dict[str, tuple[int, int]] = {}
        for chunk in self._chunks:
            for name, (late, ahead) in chunk.marked.items():
                before = marked.get(name, (0, 0))
                marked[name] = (before[0] + late, before[1] + ahead)
        return marked

    def _is_again(self, chunk: Chunk, bounds: Mapping[str, Bounds]) -> bool:
        """True if bounds that were not known when it was written change where its rows go."""
        if "raw" not in chunk.files:
            return False
        own = ((figures, bounds[name]) for name, figures in chunk.splits.items() if name in bounds)
        return any(may_exceed(f, b) or (self._shape.carries and b.after) for f, b in own)

    def rows(self, kind: Kind) -> pa.Table:
        """The rows, read back from the files."""
        columns = self._tables[kind].features.columns.names
        parts = [
            batch
            for chunk in self._chunks
            if kind in chunk.files
            for batch in self._file(kind, chunk, columns)
        ]
        return pa.Table.from_batches(parts, self._tables[kind].features.columns)

    def write(
        self, kind: Kind, writer: TableWriter, batch: int, metadata: dict[str, Any] | None = None
    ) -> None:
        """Commit the files of a kind.

        Streams that read the admitted table wait by the ingest's lateness, so its files come in the
        order of their times: those of a log that was written in time are so already. Where rows
        carry a watermark, it may be as late as their own times, so that no file may overlap the
        next one. Of dumps any order does.
        """
        lateness = self._shape.lateness if kind == "admitted" else None
        apart = NO_TIME if self._shape.carries or lateness is None else lateness
        if writer.has(batch):
            return  # By a run before this one; `close` removes what this one wrote.
        self._committed.add(kind)
        writer.append_files_once(
            self._adds(kind),
            batch,
            metadata=metadata,
            lateness=apart,
            in_order=lateness is None,
        )

    def _adds(self, kind: Kind) -> list[Tree]:
        return [chunk.files[kind] for chunk in self._chunks if kind in chunk.files]

    def close(self) -> None:
        """Remove the files that no commit was tried with."""
        for kind, table in self._tables.items():
            if kind not in self._committed:
                remove_files(table.path, self._adds(kind))


def divided(
    executors: Executors,
    shape: RowShape,
    tables: Mapping[Kind, TableFiles],
    tasks: Sequence[RawTask],
    bounds: Mapping[str, Bounds],
) -> list[Chunk]:
    """Divide raw rows by the bounds of their splits, and write them.

    Of rows that carry a watermark those of the last file alone carry the one that their split left,
    and all others that of before: a reader may stop behind any file.
    """
    own: dict[Kind, TableFiles] = {kind: tables[kind] for kind in DECIDED}
    writer = ChunkWriter(shape, own, bounds)
    if not shape.carries:
        return executors.written(tasks, writer)
    before = {name: replace(b, after=b.watermark or EPOCH) for name, b in bounds.items()}
    written = executors.written(tasks[:-1], replace(writer, bounds=before)) if tasks[:-1] else []
    return written + executors.written(tasks[-1:], writer)
