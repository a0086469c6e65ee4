"""Every file of a table looked at: log entries, checksums, table checkpoints, data files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyarrow import fs

from rivermark.lake.filesystem import abandoned_drafts, filesystem
from rivermark.lake.integrity.data_file_check import damage_of
from rivermark.lake.integrity.fault import Fault
from rivermark.lake.integrity.log_check import (
    LAST_CHECKPOINT,
    PART_MISSING,
    LogListing,
    check_checkpoint_file,
    check_entry,
    hint_problem,
    listing_of,
    lost_entry,
    read_sums,
)
from rivermark.lake.integrity.log_entry import entry_path, first_line, sums_path
from rivermark.lake.integrity.sidecar import agrees
from rivermark.model.errors import TableDamaged

CUT_TEXT: Final = 32
"""Characters of a text from which on its bounds may be cut."""
MATERIALIZED: Final = "delta.rowTracking.materialized"
"""How the properties begin that name columns of row tracking."""
ROUNDED: Final = timedelta(milliseconds=1)
RESTORE: Final = "Put the file back from a copy of the lake"

OnFile = Callable[[int], None]
"""Takes the bytes of each file that was looked at."""


def passed(_: int) -> None:
    """Report no progress."""


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


def faults_of_log(table_path: str, on_file: OnFile = passed) -> Iterator[Fault]:
    """Faults in the log of a table on this machine's disk."""
    listing = listing_of(table_path)
    folder = Path(listing.folder)
    yield from _faults_of_entries(listing, on_file)
    for version in sorted(listing.sums):
        on_file(0)
        sums = sums_path(listing.folder, version)
        if Path(sums).exists() and read_sums(listing.folder, version, drop=False) is None:
            yield Fault(
                sums,
                "is damaged",
                "It is only a help to readers; --repair writes it again from the log.",
                "rewrite checksum" if version == listing.newest else "drop checksum",
            )
    for version in sorted(listing.checkpoints):
        for name in listing.checkpoints[version]:
            yield from _faults_of_checkpoint(listing, version, folder / name, on_file)
    for version, parts in sorted(listing.torn.items()):
        yield _fault_of_parts(listing, version, folder / parts[0])
    problem = hint_problem(listing)
    if problem is not None:
        remedy = "It is only a help to readers; --repair takes it away."
        yield Fault(f"{folder}/{LAST_CHECKPOINT}", problem, remedy, "drop hint")
    for draft in abandoned_drafts(fs.LocalFileSystem(), listing.folder, datetime.now(UTC)):
        yield Fault(
            draft,
            "is a draft that a killed writer left",
            "No reader opens it; --repair and maintenance (rivermark upkeep) delete it.",
            "drop draft",
            note=True,
        )


def _faults_of_entries(listing: LogListing, on_file: OnFile) -> Iterator[Fault]:
    if not listing.entries:
        yield Fault(listing.folder, "holds no entry", f"{RESTORE}.")
        return
    oldest, newest = min(listing.entries), listing.newest
    start = listing.start_for(newest)
    if oldest > 0 and start is None:
        yield Fault(
            entry_path(listing.folder, oldest - 1),
            f"is missing: the log begins at {oldest}, and no table checkpoint begins it",
            f"{RESTORE}.",
        )
    needed = -1 if start is None else start
    problems: dict[int, str] = {}
    for version in range(oldest, newest + 1):
        if version not in listing.entries:
            problems[version] = f"is missing, and versions up to {newest} follow it"
            continue
        try:
            check_entry(listing.folder, version, drop=False)
            on_file(Path(entry_path(listing.folder, version)).stat().st_size)
        except FileNotFoundError:
            continue  # Maintenance took it away meanwhile.
        except TableDamaged as damage:
            problems[version] = damage.problem
    lost = lost_entry(listing)
    if lost is not None:
        remedy = f"Nothing is read of the table meanwhile. {RESTORE}."
        yield Fault(*lost, remedy, "drop entry")
    last = newest
    while last > needed and _is_unreadable(problems.get(last, "")):
        last -= 1
    for version, problem in problems.items():
        remedy = f"Nothing is read of the table meanwhile. {RESTORE}."
        if version <= needed:
            remedy = (
                f"The table checkpoint of version {needed} stands for it: rows are read as they "
                f"are, and only streams that are behind it and the history miss it. {RESTORE}."
            )
        path = entry_path(listing.folder, version)
        yield Fault(path, problem, remedy, "drop entry" if version > last else None)


def _is_unreadable(problem: str) -> bool:
    """Whether nothing at all can be known of what an entry held."""
    return problem.startswith(("is empty", "holds nothing", "cannot be read"))


def _faults_of_checkpoint(
    listing: LogListing, version: int, path: Path, on_file: OnFile
) -> Iterator[Fault]:
    try:
        check_checkpoint_file(path, drop=False)
        if path.suffix == ".parquet":
            _read_all(path)
        on_file(path.stat().st_size)
        return
    except FileNotFoundError:
        return
    except TableDamaged as damage:
        part = damage.path != str(path)
        problem = f"needs {damage.path}, which {damage.problem}" if part else damage.problem
    except (OSError, pa.ArrowException) as error:
        problem = f"cannot be read ({first_line(error)})"
    if _can_be_rebuilt(listing, version):
        remedy = "The entries from before it are all there; --repair deletes it: it can be rebuilt."
        yield Fault(str(path), problem, remedy, "drop checkpoint")
    else:
        remedy = f"The entries that it stands for are cleaned away. {RESTORE}."
        yield Fault(str(path), problem, remedy)


def _fault_of_parts(listing: LogListing, version: int, lost: Path) -> Fault:
    if _can_be_rebuilt(listing, version):
        remedy = "Readers pass over the others; the entries from before are all there."
        return Fault(str(lost), PART_MISSING, remedy, note=True)
    return Fault(str(lost), PART_MISSING, f"The entries are cleaned away. {RESTORE}.")


def _can_be_rebuilt(listing: LogListing, version: int) -> bool:
    """Whether the entries that a table checkpoint stands for are there, from the one before on."""
    before = max((v for v in listing.checkpoints if v < version), default=None)
    first = 0 if before is None else before + 1
    return all(v in listing.entries for v in range(first, version + 1))


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
    """Whether the newest version's checksum file counts other files than the log has."""
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
    """What is wrong with a data file; `quick` leaves out what would read all of it."""
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
        _read_all(file.path)
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read ({first_line(error)})"
    return None


def _wrong_bound(file: DataFile, footer: pq.FileMetaData) -> str | None:
    """Whether a file holds values beyond the bounds by which readers skip it.

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
    """Whether a value that has to be the larger one is the smaller."""
    if type(less) is not type(more) or not isinstance(less, (int, date, str)):
        return False
    if isinstance(less, str) and max(len(less), len(more)) >= CUT_TEXT:
        return False
    if isinstance(less, datetime):
        # Milliseconds in the log, microseconds in the file; no sum, which may lie beyond all time.
        return bool(more - less > ROUNDED)
    return bool(less < more)


def _read_all(path: Path) -> None:
    """Read a Parquet file through, with the checksums of its pages where it has some."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=False).validate(full=True)
