"""Rows as files of a folder: Parquet, CSV or JSON lines, one file a batch and day.

Files appear in two phases. All of a batch (or of a replacement) are staged below `_staged/`, and a
journal is written there that says which of them go where and which files they replace. The journal
is the commit: a writer that finds one carries it out to its end, before anything else. So a kill
leaves either nothing or what the next start completes, and no reader ever opens half a file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, ClassVar, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyarrow import fs
from pyspark.sql.types import ArrayType, MapType, StructType

from rivermark.lake.archive import is_folder, move_folder
from rivermark.lake.day_predicates import days_of, in_days, is_date
from rivermark.lake.durable import sync_in
from rivermark.lake.filesystem import filesystem, put_file
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import arrow_schema
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.json_text import json_text
from rivermark.model.rows import Rows, as_rows
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.sinks.python_rows import python_rows

if TYPE_CHECKING:
    from pyarrow import dataset

    from rivermark.model.table import Table

Format = Literal["parquet", "csv", "jsonl"]

STAGED: Final = "_staged"
JOURNAL: Final = "_staged/journal.json"
LAST: Final = "_last.json"
NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"


@declared("sink")
@dataclass(frozen=True)
class FileSink(Sink):
    """Writes to `<folder>/<table>/day=YYYY-MM-DD/`, or to `<folder>/<table>/` without days.

    `folder` is a path or a URI; one that is relative lies below the lake's root. Names beginning
    with `_` are the sink's own, and skipped by Spark, DuckDB's globs and Arrow.
    """

    folder: str = "exports"
    format: Format = "parquet"

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by the batch in the files' names: staged, then renamed"
    )
    on_replace: ClassVar[OnReplace] = "replaces days"

    @property
    def target(self) -> str:
        """The format and the folder."""
        return f"{self.format} files in {self.folder}"

    def check(self, table: Table) -> None:
        """Refuse nested columns in CSV."""
        nested = [
            field.name
            for field in table.schema.fields
            if isinstance(field.dataType, ArrayType | MapType | StructType)
        ]
        if self.format == "csv" and nested:
            raise DeclarationError(
                f"table '{table.name}': CSV cannot hold the nested column '{nested[0]}'; write "
                "parquet or jsonl, or leave the column out"
            )

    def open(self, context: SinkContext) -> SinkWriter:
        """Complete what a killed writer had begun to rename."""
        return _Writer(self.format, folder_of(self, context), context)

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
    """What is to be done, with paths within the folder: files to delete, then files to rename."""

    delete: tuple[str, ...]
    rename: tuple[tuple[str, str], ...]
    last: BatchIdentity | None


class _Writer(SinkWriter):
    def __init__(self, kind: Format, folder: str, context: SinkContext) -> None:
        self._kind = kind
        self._folder = folder
        self._table = context.table
        self._origin = context.origin
        self._schema = arrow_schema(context.table.schema)
        self._store, self._path = filesystem(folder)
        self._store.create_dir(self._path, recursive=True)
        with commit_lock(folder):
            self._complete()

    def last(self) -> BatchIdentity | None:
        return self._last

    @cached_property
    def _last(self) -> BatchIdentity | None:
        content = self._content(LAST)
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
        """Write the files of these rows below the staging folder, one for each day."""
        self._remove(STAGED)
        self._store.create_dir(f"{self._path}/{STAGED}", recursive=True)
        source = self._dataset(rows)
        count, staged = 0, []
        for folder, chosen in self._by_day(source):
            draft, target = f"{STAGED}/{folder}{name}", f"{folder}{name}"
            self._store.create_dir(f"{self._path}/{draft}".rsplit("/", 1)[0], recursive=True)
            with self._store.open_output_stream(f"{self._path}/{draft}") as file:
                written = write_rows(file, self._kind, self._schema, batches(chosen, self._schema))
            if written:
                staged.append((draft, target))
                count += written
        return count, tuple(staged)

    def _dataset(self, rows: Rows) -> dataset.Dataset:
        """The rows as a dataset; those in files are not read into memory at once."""
        from pyarrow import dataset

        readable = as_rows(rows).readable()
        if isinstance(readable, pa.Table):
            return dataset.dataset(readable.select(self._schema.names).cast(self._schema))
        return readable

    def _by_day(self, source: dataset.Dataset) -> Iterator[tuple[str, dataset.Dataset]]:
        if self._table.days is None:
            yield "", source
            return
        column, zone = self._table.days.column, self._table.days.zone
        values = source.to_table(columns=[column])[column]
        if not is_date(self._table):
            values = pc.local_timestamp(values.cast(pa.timestamp("us", zone))).cast(pa.date32())
        for day in sorted(d for d in values.unique().to_pylist() if d is not None):
            yield f"day={day}/", source.filter(in_days(self._table, [day]))
        if values.null_count:
            yield f"day={NO_DAY}/", source.filter(pc.field(column).is_null())

    def _commit(self, journal: Journal) -> None:
        self._origin.check()
        drafts = [f"{self._path}/{draft}" for draft, _ in journal.rename]
        sync_in(self._store, [*drafts, *{draft.rsplit("/", 1)[0] for draft in drafts}])
        put_file(self._store, f"{self._path}/{JOURNAL}", msgspec.json.encode(asdict(journal)))
        self._complete()

    def _complete(self) -> None:
        """Carry out the journal that is there, if one is; every step may be repeated."""
        content = self._content(JOURNAL)
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

    def _content(self, path: str) -> bytes | None:
        try:
            with self._store.open_input_stream(f"{self._path}/{path}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def _files(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self._path}/{folder}", allow_not_found=True)
        return [f"{folder}/{f.base_name}" for f in self._store.get_file_info(selector)]

    def _remove(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            self._store.delete_dir(f"{self._path}/{folder}")


def batches(source: dataset.Dataset, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in their order, with the declared types."""
    for batch in source.scanner(use_threads=False).to_batches():
        yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()


def write_rows(
    file: IO[bytes], kind: Format, schema: pa.Schema, rows: Iterator[pa.RecordBatch]
) -> int:
    """Write the rows in the format, and return how many they are."""
    count = 0
    if kind == "jsonl":
        for batch in rows:
            file.writelines(json_text(row) + b"\n" for row in python_rows(batch))
            count += batch.num_rows
        return count
    writer = (
        pa.parquet.ParquetWriter(file, schema)
        if kind == "parquet"
        else pa.csv.CSVWriter(file, schema)
    )
    with writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    return count
