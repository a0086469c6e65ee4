"""Every data file of a table's newest version looked at, beside what the log says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.data_file_check import damage_of, read_all
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.log_entry import first_line, sums_path
from rivermark.lake.integrity.log_files import read_sums
from rivermark.lake.integrity.sidecar import agrees

CUT_TEXT: Final = 32
"""Characters of a text from which on its bounds may be cut."""
MATERIALIZED: Final = "delta.rowTracking.materialized"
"""How the properties begin that name columns of row tracking."""
ROUNDED: Final = timedelta(milliseconds=1)


@dataclass(frozen=True)
class DataFile:
    """A file of the newest version, with the size and the rows that the log has for it.

    `columns` are those that may be in the file: a partition column is in none. `bounds` are the
    smallest and the largest value by column, where the log says them.
    """

    path: Path
    size: int
    rows: int | None
    columns: frozenset[str] | None = None
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)


def data_files(table_path: str) -> list[DataFile]:
    """The files of the newest version. Raises TableDamaged or DeltaError where the log is not."""
    table = DeltaTable(table_path)
    root = Path(filesystem(table_path)[1])
    actions = pa.table(table.get_add_actions(flatten=True))
    added = {name: _values(actions[name]) for name in actions.column_names}
    none = [None] * actions.num_rows
    # With column mapping files have other names than the table.
    metadata = table.metadata()
    mapped = "delta.columnMapping.mode" in metadata.configuration
    # Row tracking keeps ids in columns of the files that the table does not have.
    tracked = {v for k, v in metadata.configuration.items() if k.startswith(MATERIALIZED)}
    names = {column.name for column in table.schema().fields} - {*metadata.partition_columns}
    return [
        DataFile(
            # Files of a shallow clone lie elsewhere.
            root / unquote(path).removeprefix("file:"),
            added["size_bytes"][n],
            added.get("num_records", none)[n],
            None if mapped else frozenset(names | tracked),
            {
                name: (added.get(f"min.{name}", none)[n], added.get(f"max.{name}", none)[n])
                for name in (() if mapped else names)
            },
        )
        for n, path in enumerate(added["path"])
    ]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; none where Python has no such moment."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return [None] * len(column)


def sums_problem(table_path: str) -> Fault | None:
    """The fault of the newest checksum file, where it counts other files than the log has."""
    table = DeltaTable(table_path)
    folder = filesystem(f"{table_path}/_delta_log")[1]
    sums = read_sums(folder, table.version(), drop=False)
    if sums is None:
        return None
    sizes = table.get_add_actions()["size_bytes"].to_pylist()
    stated = (sums["numFiles"], sums["tableSizeBytes"])
    if stated == (len(sizes), sum(sizes)):
        return None
    return Fault(
        sums_path(folder, table.version()),
        f"counts {stated[0]} files of {stated[1]} bytes, the log {len(sizes)} of {sum(sizes)}",
        "Where the entries are whole it is the checksum file: --repair writes it again.",
        "rewrite checksum",
    )


def data_file_problem(file: DataFile, *, quick: bool = False) -> str | None:
    """The fault of a data file; `quick` leaves out what would read all of it."""
    try:
        size = file.path.stat().st_size
        if size != file.size:
            return f"has {size} bytes, the log says {file.size}"
        footer = pq.read_metadata(file.path)
        if file.rows is not None and footer.num_rows != file.rows:
            return f"holds {footer.num_rows} rows, the log says {file.rows}"
        strange = {*footer.schema.to_arrow_schema().names} - (file.columns or set())
        if file.columns is not None and strange:
            return f"holds a column {min(strange)!r}, which the table does not have there"
        problem = _wrong_bound(file, footer) or damage_of(file.path)
        if problem is not None or quick:
            return problem
        if agrees(file.path) is False:
            return "does not agree with its checksum file"
        read_all(file.path)
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read ({first_line(error)})"
    return None


def _wrong_bound(file: DataFile, footer: pq.FileMetaData) -> str | None:
    """The fault of a file that holds values beyond the bounds by which readers skip it.

    Of whole numbers, dates, times and short texts: others are cut or rounded in the log.
    """
    for group, place in product(range(footer.num_row_groups), range(footer.num_columns)):
        column = footer.row_group(group).column(place)
        name = column.path_in_schema
        low, high = file.bounds.get(name, (None, None))
        try:
            smallest, largest = column.statistics.min, column.statistics.max
        except (AttributeError, OverflowError, ValueError):
            continue  # It has none, or one that Python cannot say.
        if _beyond(smallest, low):
            return f"holds {name} {smallest}, the log says {low} at least"
        if _beyond(high, largest):
            return f"holds {name} {largest}, the log says {high} at most"
    return None


def _beyond(less: Any, more: Any) -> bool:
    """Returns True if a value that has to be the larger one is the smaller."""
    if type(less) is not type(more) or not isinstance(less, (int, date, str)):
        return False
    if isinstance(less, str) and max(len(less), len(more)) >= CUT_TEXT:
        return False
    if isinstance(less, datetime):
        # Milliseconds in the log, microseconds in the file; no sum, which may lie beyond all time.
        return bool(more - less > ROUNDED)
    return bool(less < more)
