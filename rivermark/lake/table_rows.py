"""The rows of a table as an Arrow dataset that opens only files in which a filter may find some.

The bounds of the log stay columns of Arrow, and a filter is asked of ranges of files before it is
asked of single ones, by the columns that it names: of 100,000 files a few hundred expressions are
made. delta-rs's `to_pyarrow_dataset` makes one of each bound of each file: 57 s of CPU, 3.1 GB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import dataset as ds
from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.data_file_check import check_data_file, read_as
from rivermark.model.errors import TableDamaged

SKIPPING: Final = (
    pa.types.is_integer,
    pa.types.is_temporal,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
)
"""Types by whose bounds files are skipped: those in which every value lies between both."""
MILLISECOND: Final = pa.scalar(1000, pa.duration("us"))
"""By so much bounds of moments may be cut."""
TEXTS: Final = re.compile("string|binary")
"""In the name of a type that files may hold as views."""
SMALL: Final = 64 << 10
"""Bytes up to which files, on average, are read one after the other."""
AT_ONCE: Final = 64 << 20
"""Bytes up to which such files are, in all: their rows are held in memory."""
RANGE: Final = 64
"""Files that are asked together, and ranges that are."""
NATIVE: Final = "(read a table's rows by the methods of its dataset, not by Arrow's own scanner)"
"""The only file that Arrow itself knows of: a road past `scanner` fails, and finds not nothing."""


class TableRows(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """The rows of an opened version of a table.

    `version` is its number, and `table_id` is another one after the table was created again.
    `damage` is what a scan found in a data file: DuckDB tells of it in words of its own.
    """

    def __init__(self, delta: DeltaTable) -> None:
        self.damage: TableDamaged | None = None
        self.version, self.table_id = delta.version(), str(delta.metadata().id)
        store, folder = filesystem(delta.table_uri)
        # delta-rs's own file system is Python that Arrow's threads call: a process that ends while
        # one of them lets go of a file is aborted, which one in ten short commands was.
        self._store = fs.SubTreeFileSystem(folder, store)
        self._folder = folder.rstrip("/") if is_local(delta.table_uri) else None
        self._format = ds.ParquetFileFormat(
            default_fragment_scan_options=ds.ParquetFragmentScanOptions(
                pre_buffer=True, page_checksum_verification=True
            )
        )
        added = delta.get_add_actions()
        self._added = pa.RecordBatchReader.from_stream(added).read_all().combine_chunks()
        self._names = self._added["path"].to_pylist()
        self._sizes = self._added["size_bytes"].to_pylist()
        self._partitions = delta.metadata().partition_columns
        self._bounds: dict[str, _Bounds | None] = {}
        own = self._format.make_fragment(NATIVE, self._store)
        super().__init__([own], pa.schema(delta.schema().to_arrow()), self._format, self._store)

    @property
    def files(self) -> list[str]:
        """The paths of all files, inside the table's folder."""
        return [unquote(name) for name in self._names]

    def scanner(
        self,
        columns: Any = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
        **options: Any,
    ) -> ds.Scanner:
        """A scanner over the files that may hold such rows, each checked once in a process.

        Checked here, before Arrow opens them in threads that wait for this one. Raises
        TableDamaged.
        """
        rows = self._opened(self._chosen(filter))
        return rows.scanner(columns=columns, filter=filter, **options)

    def get_fragments(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> Iterator[ds.Fragment]:
        """The files that may hold such rows. Raises TableDamaged."""
        return iter(self._opened(self._chosen(filter)).get_fragments())

    def count_rows(
        self,
        filter: pc.Expression | None = None,  # noqa: A002
        **options: Any,
    ) -> int:
        """Number of rows that fulfil the filter; of all, as the log says, where it does."""
        counts = self._added["num_records"]
        if filter is None and not counts.null_count:
            return int(pc.sum(counts).as_py() or 0)
        return int(self.scanner(columns=[], filter=filter, **options).count_rows())

    def size(self, condition: pc.Expression) -> int:
        """Bytes of the files that may hold such rows."""
        chosen = pa.array(self._chosen(condition), pa.int64())
        return int(pc.sum(self._added["size_bytes"].take(chosen)).as_py() or 0)

    def filter(self, expression: pc.Expression) -> ds.Dataset:
        """Refused, as every copy that Arrow would make without the files."""
        raise TypeError("give the filter to the method that reads the rows")

    def replace_schema(self, schema: pa.Schema) -> ds.Dataset:
        """Refused likewise."""
        raise TypeError("cast the rows that were read")

    def near(self, condition: pc.Expression) -> ds.FileSystemDataset:
        """The rows of the files that may hold such rows. Raises TableDamaged."""
        return self._opened(self._chosen(condition))

    def of_files(self, names: Iterable[str]) -> ds.FileSystemDataset:
        """The rows of those of the files alone, in this order. Raises TableDamaged."""
        places = {name: index for index, name in enumerate(self.files)}
        return self._opened(places[name] for name in names if name in places)

    def newest(self, column: str) -> ds.FileSystemDataset:
        """The rows of the files of which one has the largest value of a column."""
        return self._opened(pc.indices_nonzero(self._reaches(column, None)).to_pylist())

    def by_hour(
        self, column: str, start: datetime, end: datetime
    ) -> tuple[dict[datetime, int], ds.FileSystemDataset]:
        """Rows of [start, end) by the hour of a moment: of files of one hour, by the log alone.

        With the rows of the other files that may hold some.
        """
        field, rows = self.schema.field(column), self._added["num_records"]
        low = pc.subtract(self._of("min", field), MILLISECOND)
        high = pc.add(self._of("max", field), MILLISECOND)
        nulls = self._of("null_count", pa.field(column, pa.int64()))
        first, after = (pa.scalar(moment, field.type) for moment in (start, end))
        hour = pc.floor_temporal(low, unit="hour")
        one = pc.and_(pc.equal(hour, pc.floor_temporal(high, unit="hour")), pc.equal(nulls, 0))
        one = pc.and_(one, pc.and_(pc.greater_equal(low, first), pc.less(high, after)))
        one = pc.fill_null(pc.and_(one, pc.is_valid(rows)), False)
        near = pc.and_(pc.greater_equal(high, first), pc.less(low, after))
        others = pc.and_not(pc.fill_null(near, True), one)
        counted = pa.table({"hour": hour, "n": rows}).filter(one).group_by("hour")
        counts = counted.aggregate([("n", "sum")]).to_pylist()
        rest = self._opened(pc.indices_nonzero(others).to_pylist())
        return {each["hour"].astimezone(UTC): each["n_sum"] for each in counts}, rest

    def files_since(self, column: str, moment: datetime) -> int:
        """Number of files that may hold a moment or a date at or after one."""
        return int(pc.sum(self._reaches(column, moment)).as_py() or 0)

    def _reaches(self, column: str, at_least: datetime | None) -> pa.ChunkedArray:
        """By file, whether a value may reach so far; without a moment, so far as any does."""
        field = self.schema.field(column)
        high = self._of("max", field)
        nulls = self._of("null_count", pa.field(column, pa.int64()))
        empty = pc.fill_null(pc.equal(nulls, self._added["num_records"]), False)
        if pa.types.is_timestamp(field.type):
            high = pc.add(high, MILLISECOND)
        least = pc.max(high)
        if at_least is not None:
            least = pa.scalar(at_least, pa.timestamp("us", "UTC")).cast(field.type)
        elif pa.types.is_timestamp(field.type) and least.is_valid:
            least = pc.subtract(least, MILLISECOND)
        known = pc.greater_equal(high, least)
        return pc.and_(pc.fill_null(known, True), pc.invert(empty))

    def _opened(self, indexes: Iterable[int]) -> ds.FileSystemDataset:
        fragments, size = [], 0
        for index in indexes:
            name = unquote(self._names[index])
            if self._folder is not None:
                try:
                    check_data_file(self._folder, name)
                except TableDamaged as damage:
                    self.damage = damage
                    raise
            # No file holds the values of the columns by which it is partitioned.
            known = {"partition_expression": self._partition_of(index)} if self._partitions else {}
            fragments.append(self._format.make_fragment(name, self._store, **known))
            size += self._sizes[index]
        rows = _Files(fragments, self.schema, self._format, self._store)
        local = self._folder is not None and not self._partitions
        rows.small = local and size <= min(SMALL * len(fragments), AT_ONCE)
        return rows

    def _chosen(self, condition: pc.Expression | None) -> list[int]:
        """The numbers of the files that may hold such rows, in the order of the log."""
        text, chosen = "" if condition is None else str(condition), None
        for field in self.schema:
            bounds = self._bounds_of(field) if field.name in text else None
            if bounds is not None:
                files = bounds.files_for(condition)
                chosen = files if chosen is None else chosen & files
        return [*range(len(self._names))] if chosen is None else sorted(chosen)

    def _bounds_of(self, field: pa.Field) -> _Bounds | None:
        if field.name not in self._bounds:
            self._bounds[field.name] = self._read_bounds(field)
        return self._bounds[field.name]

    def _read_bounds(self, field: pa.Field) -> _Bounds | None:
        if field.name in self._partitions:
            values = self._of("partition", field)
            nulls = pc.if_else(pc.is_null(values), self._added["num_records"], 0)
            return _Bounds(self.schema, field, values, values, nulls, self._added["num_records"])
        if not any(is_kind(field.type) for is_kind in SKIPPING):
            return None
        low, high = self._of("min", field), self._of("max", field)
        if pa.types.is_timestamp(field.type):
            low, high = pc.subtract(low, MILLISECOND), pc.add(high, MILLISECOND)
        nulls = self._of("null_count", pa.field(field.name, pa.int64()))
        return _Bounds(self.schema, field, low, high, nulls, self._added["num_records"])

    def _of(self, what: str, field: pa.Field) -> pa.ChunkedArray:
        """A statistic of a column by file; null where the log has none."""
        columns = self._added
        if what in columns.column_names:
            place = columns[what].type.get_field_index(field.name)
            if place >= 0:
                return pc.struct_field(columns[what], place).cast(field.type)
        return pa.chunked_array([pa.nulls(columns.num_rows, field.type)])

    def _partition_of(self, index: int) -> pc.Expression:
        known = pc.scalar(True)
        for name in self._partitions:
            value = self._of("partition", self.schema.field(name))[index]
            column = pc.field(name)
            known &= column == value if value.is_valid else column.is_null()
        return known


def _read(schema: pa.Schema, file: ds.ParquetFileFragment) -> pa.Table:
    """The rows of a file; DuckDB, where it asks, tells only the words of the error."""
    try:
        return read_as(schema, file.filesystem, file.path)
    except pa.ArrowException as error:
        raise type(error)(f"{file.path}: {error}") from error


class _Files(ds.FileSystemDataset):  # type: ignore[misc]  # Arrow has no types
    """Some files of a table, of which a filter sees the values as the table has them.

    Where delta-rs writes rows again, as a merge does, texts and bytes are views, which Arrow
    compares with no text: the rows of such files are read first, and filtered as what they are
    cast to. Those of small files are too, one file after the other: Arrow's scan of a file costs
    0.3 to 0.4 ms of CPU beside its rows, to read it 0.13 to 0.2.
    """

    small = False

    def scanner(
        self,
        columns: Any = None,
        filter: pc.Expression | None = None,  # noqa: A002 - Arrow's name
        **options: Any,
    ) -> ds.Scanner:
        """A scanner over the files."""
        text = "" if filter is None else str(filter)
        named = [field for field in self.schema if field.name in text]
        texts = [field.name for field in named if TEXTS.search(str(field.type))]
        # Columns by expressions may refer to any.
        whole = columns if isinstance(columns, list) else self.schema.names
        wanted = [*dict.fromkeys((*whole, *(field.name for field in named)))]
        if self.small and wanted:
            schema = pa.schema([self.schema.field(name) for name in wanted])
            files = (_read(schema, file) for file in self.get_fragments())
            # Read here: a process may end while Arrow's threads call Python.
            rows = pa.concat_tables([*files, schema.empty_table()]).combine_chunks()
            return ds.dataset(rows).scanner(columns=columns, filter=filter, **options)
        if not texts or not any(_has_views(file, texts) for file in self.get_fragments()):
            return super().scanner(columns=columns, filter=filter, **options)
        plain = super().scanner(columns=wanted, **options)
        return ds.Scanner.from_batches(plain.to_reader(), columns=columns, filter=filter)


def _has_views(file: ds.ParquetFileFragment, columns: list[str]) -> bool:
    file.ensure_complete_metadata()  # Which the scan then reads no second time.
    stored = file.physical_schema
    return any("_view" in str(stored.field(name).type) for name in columns if name in stored.names)


class _Bounds:
    """The bounds of a column, by file and by ranges of files, in the order of the lower one."""

    def __init__(
        self,
        schema: pa.Schema,
        field: pa.Field,
        low: pa.ChunkedArray,
        high: pa.ChunkedArray,
        nulls: pa.ChunkedArray,
        rows: pa.ChunkedArray,
    ) -> None:
        self._schema = schema
        self._column = pc.field(field.name)
        table = pa.table(
            {
                "file": pa.array(range(len(low)), pa.int64()),
                "low": low,
                "high": high,
                "null": pc.fill_null(pc.not_equal(nulls, 0), True),
                "empty": pc.fill_null(pc.equal(nulls, rows), False),
            }
        )
        # One with values and without a bound may hold anything.
        bounded = pc.and_(pc.is_valid(table["low"]), pc.is_valid(table["high"]))
        known = table.filter(pc.or_(bounded, table["empty"]))
        self._unknown = {
            *table.filter(pc.invert(pc.or_(bounded, table["empty"])))["file"].to_pylist()
        }
        leaves = known.sort_by("low").combine_chunks()
        self._levels = [leaves]
        while self._levels[-1].num_rows > RANGE:
            self._levels.append(_ranges(self._levels[-1]))

    def files_for(self, condition: pc.Expression) -> set[int]:
        """The numbers of the files in which the condition may hold."""
        chosen = [*range(self._levels[-1].num_rows)]
        for number, level in reversed([*enumerate(self._levels)]):
            kept = self._may_hold(condition, level, chosen)
            if number == 0:
                return self._unknown | self._files_at(kept)
            below = self._levels[number - 1].num_rows
            chosen = [n for r in kept for n in range(r * RANGE, min((r + 1) * RANGE, below))]
            if number == 1 and len(kept) > max(RANGE, level.num_rows // 2):
                # Of so many most would remain: to ask each costs more than to open the others.
                return self._unknown | self._files_at(chosen)
        raise AssertionError("the last level are the files")

    def _files_at(self, places: list[int]) -> set[int]:
        return {*self._levels[0]["file"].take(pa.array(places, pa.int64())).to_pylist()}

    def _may_hold(self, condition: pc.Expression, level: pa.Table, chosen: list[int]) -> list[int]:
        form, store = ds.ParquetFileFormat(), fs.LocalFileSystem()
        low, high, null, empty = (level[name] for name in ("low", "high", "null", "empty"))
        fragments = []
        for n in chosen:
            known = self._column.is_null()
            if not empty[n].as_py():
                above, below = self._column >= low[n], self._column <= high[n]
                if null[n].as_py():
                    above, below = above | known, below | known
                known = above & below
            fragments.append(form.make_fragment(str(n), store, partition_expression=known))
        bounded = ds.FileSystemDataset(fragments, self._schema, form, store)
        return [int(fragment.path) for fragment in bounded.get_fragments(condition)]


def _ranges(level: pa.Table) -> pa.Table:
    """The bounds of each so many of a level."""
    parts = [level.slice(start, RANGE) for start in range(0, level.num_rows, RANGE)]

    def of(name: str, choose: Any) -> pa.Array:
        values = [choose(part[name]) for part in parts]
        return pa.array(values, level.schema.field(name).type)

    return pa.table(
        {
            "low": of("low", pc.min),
            "high": of("high", pc.max),
            "null": of("null", pc.any),
            "empty": of("empty", pc.all),
        }
    )
