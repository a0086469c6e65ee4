"""A data file's bytes checked before they are read, where its pages and footer cannot say it.

Pages that we and Spark write carry checksums, which Arrow verifies. A Parquet footer has none in
the format: a flipped bit in a column's name makes the column empty. So files of ours have the
CRC-32 of their footer in their name, where no copy and no log can lose it. Files of Spark and
delta-rs have Hadoop's checksum file beside them, by which the footer is checked, and all of a small
file of delta-rs, whose pages have no checksums.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow import fs

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.known_files import is_known, remember, stamp_of
from rivermark.lake.integrity.log_entry import read_entry, table_in
from rivermark.lake.integrity.sidecar import agrees, end_agrees, sidecar_of
from rivermark.model.errors import TableDamaged

NAMED: Final = re.compile(r".+-([0-9a-f]{8})\.snappy\.parquet")
TAIL: Final = 8
"""Bytes behind a footer: its length, and Parquet's mark."""
SPARK: Final = b"parquet-mr"
"""Said in the footer of files of Spark, whose pages have checksums."""
READ_WHOLE: Final = 8 << 20
"""Bytes up to which a file of delta-rs is read for its checksums before rows of it are: 10 ms."""
CHANGED: Final = "cannot be read (its footer is not the one that was written)"


def check_data_file(folder: str, name: str) -> None:
    """Check a data file of a table, by its path inside the table's folder, once in a process.

    One that is missing is left to the reader. Raises TableDamaged.
    """
    path = Path(folder, name)
    try:
        if is_known(path):
            return
        stamp = stamp_of(path)
    except FileNotFoundError:
        return
    problem = damage_of(path)
    if problem is not None:
        raise TableDamaged.of(table_in(folder), str(path), problem)
    remember(path, stamp)


def damage_of(path: Path) -> str | None:
    """The fault of a data file, beyond what its pages say."""
    with path.open("rb") as file:
        footer, start = _footer(file)
    named = NAMED.fullmatch(path.name)
    if named is not None:
        return CHANGED if zlib.crc32(footer) != int(named[1], 16) else None
    if SPARK not in footer and path.stat().st_size <= READ_WHOLE:
        return "does not agree with its checksum file" if agrees(path) is False else None
    return CHANGED if end_agrees(path, start) is False else None


def check_added(table_path: str, first: int, last: int) -> None:
    """Check the footers of our files that those versions added, before Spark reads them.

    It verifies the checksum files beside those of other writers itself. Raises TableDamaged.
    """
    store, log = filesystem(f"{table_path}/_delta_log")
    for version in range(first, last + 1) if is_local(table_path) else ():
        try:
            actions = read_entry(store, log, version)
        except FileNotFoundError:
            continue  # Cleaned away: no batch reads it.
        _check_ours(str(Path(log).parent), [a["add"]["path"] for a in actions if "add" in a])


def check_current(table_path: str, table: DeltaTable) -> None:
    """As `check_added`, of the files that an opened version of a table has."""
    if is_local(table_path):
        _, folder = filesystem(table_path)
        _check_ours(folder, table.get_add_actions()["path"].to_pylist())


def _check_ours(folder: str, names: Iterable[str]) -> None:
    """Check those of the files, by their names in the log, whose names hold their footer's CRC."""
    for name in names:
        if NAMED.fullmatch(name):
            check_data_file(folder, unquote(name))


def name_with_checksum(name: str, content: pa.Buffer) -> str:
    """The name of a data file of ours, with the CRC-32 of its footer."""
    footer, _ = _footer(pa.BufferReader(content))
    return f"{name.removesuffix('.snappy.parquet')}-{zlib.crc32(footer):08x}.snappy.parquet"


def lacks_checksums(path: Path) -> bool:
    """Returns True if nothing beside a data file, nor its name, says what it has to be."""
    return NAMED.fullmatch(path.name) is None and not sidecar_of(path).exists()


def _footer(file: IO[bytes] | pa.NativeFile) -> tuple[bytes, int]:
    """A file's footer with what follows it, and where it begins; of one that is cut, the end."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TAIL, 0))
    length = int.from_bytes(file.read(4), "little")
    start = file.seek(max(size - TAIL - length, 0))
    return file.read(), start


def read_as(schema: pa.Schema, store: fs.FileSystem, path: str) -> pa.Table:
    """The rows of a data file with these columns and types; a column that it lacks is empty."""
    part = read_file(store, path, schema.names)
    if part.schema == schema:
        return part
    known, count = part.schema.names, part.num_rows
    columns = (
        part[f.name].cast(f.type) if f.name in known else pa.nulls(count, f.type) for f in schema
    )
    return pa.table([*columns], schema=schema)


def read_file(store: fs.FileSystem, path: str, columns: list[str]) -> pa.Table:
    """A data file, by those of the columns that it has; its pages are compared with checksums."""
    with (
        store.open_input_file(path) as content,
        pq.ParquetFile(content, page_checksum_verification=True) as file,
    ):
        # Not by threads: most such files hold a few rows, of one batch.
        return file.read(columns=columns, use_threads=False)


def read_all(path: Path) -> None:
    """Read a Parquet file through, with the checksums of its pages where it has some."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=False).validate(full=True)
