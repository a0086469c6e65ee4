"""Rows as files of a folder: Parquet, CSV or JSON lines, one file a batch and day.

Files appear in two phases. All of a batch (or of a replacement) are staged below `_staged/`, and a
journal is written there that says which of them go where and which files they replace. The journal
is the commit: a writer that finds one carries it out to its end, before anything else. So a kill
leaves either nothing or what the next start completes, and no reader ever opens half a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from pyarrow import fs
from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

from rivermark.lake.archive import is_folder, move_folder
from rivermark.lake.day_predicates import days_of
from rivermark.lake.delta import damage_named
from rivermark.lake.durable import sync_in
from rivermark.lake.filesystem import content_of, filesystem, put_file
from rivermark.lake.locks import commit_lock
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.rows import Rows, as_rows
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    Holding,
    OnReplace,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.sinks.file_drafts import Drafts, Format

if TYPE_CHECKING:
    from rivermark.model.table import Table

DAY: Final = "day"
"""The column that the names of folders make."""
STAGED: Final = "_staged"
JOURNAL: Final = "_staged/journal.json"
LAST: Final = "_last.json"


@declared("sink")
@dataclass(frozen=True)
class FileSink(Sink):
    """Writes to `<folder>/<table>/day=YYYY-MM-DD/`, or to `<folder>/<table>/` without days.

    `folder` is a path or a URI; a relative path is below the lake's root. Names beginning with `_`
    are the sink's own, and skipped by Spark, DuckDB's globs and Arrow.
    """

    folder: str = "exports"
    format: Format = "parquet"

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by the batch in the files' names: staged, then renamed"
    )
    on_replace: ClassVar[OnReplace] = "replaces days"
    keeps_last: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.folder.strip("/") or ".." in self.folder.split("/"):
            raise DeclarationError(
                f"sink of files: folder {self.folder!r} would put them among the tables of the "
                "lake; write a folder of their own, such as 'exports', without '..'"
            )

    @property
    def target(self) -> str:
        """The format and the folder."""
        return f"{self.format} files in {self.folder}"

    def check(self, table: Table) -> None:
        """Refuse nested and binary columns in CSV, and one that readers would take from folders."""
        if table.days is not None and DAY in {name.lower() for name in table.schema.fieldNames()}:
            raise DeclarationError(
                f"table '{table.name}': its files lie in folders {DAY}=YYYY-MM-DD, which readers "
                f"take for a column, and it has a column '{DAY}' of its own: rename that one, "
                f'.withColumnRenamed("{DAY}", ...)'
            )
        if self.format != "csv":
            return
        for column in table.schema.fields:
            if isinstance(column.dataType, ArrayType | MapType | StructType):
                raise DeclarationError(
                    f"table '{table.name}': CSV cannot hold the nested column '{column.name}'; "
                    "write parquet or jsonl, or leave the column out"
                )
            if isinstance(column.dataType, BinaryType):
                # Written as they are, the first that are no UTF-8 would end the stream.
                raise DeclarationError(
                    f"table '{table.name}': CSV cannot hold the bytes of column '{column.name}'; "
                    f'write parquet or jsonl, or their text, F.base64("{column.name}")'
                )

    def open(self, context: SinkContext) -> SinkWriter:
        """Complete what a killed writer had begun to rename."""
        return _Writer(self.format, folder_of(self, context), context)

    def holding(self, context: SinkContext) -> Holding | None:
        """Count the rows of the files; not while some are being renamed."""
        from pyarrow import dataset  # It imports pandas, which takes a second.

        store, path = filesystem(folder_of(self, context))
        last = content_of(store, f"{path}/{LAST}")
        if last is None:
            return Holding(-1)
        batch = msgspec.json.decode(last, type=BatchIdentity)
        is_ours = batch == context.origin.batch(batch.batch)
        kind = "json" if self.format == "jsonl" else self.format
        # Files and folders of a name that begins with `_` are passed over.
        files = dataset.dataset(path, filesystem=store, format=kind)
        with damage_named(files):
            rows = files.count_rows()
        is_moving = content_of(store, f"{path}/{JOURNAL}") is not None
        is_moving |= content_of(store, f"{path}/{LAST}") != last
        return Holding(batch.batch if is_ours else -1, None if is_moving else rows)

    def archive(self, context: SinkContext, stamp: str) -> list[str]:
        """Move the table's folder to `<folder>/_removed/<stamp>/`."""
        folder = folder_of(self, context)
        if not is_folder(folder):
            return []
        parent = folder.removesuffix(f"/{context.table.name}")
        target = f"{parent}/_removed/{stamp}/{context.table.name}"
        move_folder(folder, target)
        return [target]


def folder_of(sink: FileSink, context: SinkContext) -> str:
    """The folder of an output's files."""
    absolute = sink.folder.startswith("/") or "://" in sink.folder
    parent = sink.folder if absolute else f"{context.root}/{sink.folder}"
    return f"{parent.rstrip('/')}/{context.table.name}"


@dataclass(frozen=True)
class Journal:
    """The planned changes of a folder: files to delete, then files to rename."""

    delete: tuple[str, ...]
    rename: tuple[tuple[str, str], ...]
    last: BatchIdentity | None


class _Writer(SinkWriter):
    def __init__(self, kind: Format, folder: str, context: SinkContext) -> None:
        self._kind = kind
        self._drafts = Drafts(f"{folder}/{STAGED}", kind, context.table)
        self._folder = folder
        self._table = context.table
        self._origin = context.origin
        self._store, self._path = filesystem(folder)
        self._store.create_dir(self._path, recursive=True)
        with commit_lock(folder):
            self._complete()

    def last(self) -> BatchIdentity | None:
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        content = content_of(self._store, f"{self._path}/{LAST}")
        if content is None:
            return None
        last = msgspec.json.decode(content, type=BatchIdentity)
        return last if last == self._origin.batch(last.batch) else None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        if self._last is not None and self._last.batch >= identity.batch:
            return 0
        name = f"{identity.generation:04d}-{identity.batch:010d}.{self._kind}"
        with commit_lock(self._folder):
            count, staged = self._stage(rows, name)
            self._commit(Journal((), staged, identity))
        self._last = identity
        return count

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Stage the rows of the days, then put them in place of all files of these days.

        Each file appears whole. A reader that lists a day's folder while its files are exchanged
        can miss the day; it never sees its rows twice.
        """
        days_of(self._table)
        with commit_lock(self._folder):
            count, staged = self._stage(rows, f"replaced-{replacement}.{self._kind}")
            before = [path for day in sorted(set(days)) for path in self._files(f"day={day}")]
            self._commit(Journal(tuple(before), staged, None))
        return count

    def _stage(self, rows: Rows, name: str) -> tuple[int, tuple[tuple[str, str], ...]]:
        """Write the files of these rows below the staging folder, one for each day and task."""
        self._remove(STAGED)
        self._store.create_dir(f"{self._path}/{STAGED}", recursive=True)
        drafts = self._drafts.of(as_rows(rows), name)
        renamed = tuple((f"{STAGED}/{each.name}", each.name) for each in drafts)
        return sum(each.rows for each in drafts), renamed

    def _commit(self, journal: Journal) -> None:
        self._origin.check()
        drafts = [f"{self._path}/{draft}" for draft, _ in journal.rename]
        sync_in(self._store, [*drafts, *{draft.rsplit("/", 1)[0] for draft in drafts}])
        put_file(self._store, f"{self._path}/{JOURNAL}", msgspec.json.encode(asdict(journal)))
        self._complete()

    def _complete(self) -> None:
        """Carry out the journal that is there, if one is; every step may be repeated."""
        content = content_of(self._store, f"{self._path}/{JOURNAL}")
        if content is None:
            return
        journal = msgspec.json.decode(content, type=Journal)
        for path in journal.delete:
            with suppress(FileNotFoundError):
                self._store.delete_file(f"{self._path}/{path}")
        for draft, target in journal.rename:
            self._store.create_dir(f"{self._path}/{target}".rsplit("/", 1)[0], recursive=True)
            with suppress(FileNotFoundError):
                self._store.move(f"{self._path}/{draft}", f"{self._path}/{target}")
        targets = {f"{self._path}/{target}".rsplit("/", 1)[0] for _, target in journal.rename}
        sync_in(self._store, [*targets, self._path])
        if journal.last is not None:
            last = json.dumps(asdict(journal.last)).encode()
            put_file(self._store, f"{self._path}/{LAST}", last)
        self._store.delete_file(f"{self._path}/{JOURNAL}")
        self._remove(STAGED)

    def _files(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        return [f"{folder}/{f.base_name}" for f in self._store.get_file_info(selector)]

    def _remove(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            self._store.delete_dir(f"{self._path}/{folder}")
