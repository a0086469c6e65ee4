"""The first line of a landed file: the columns of CSV, the keys of a JSON object."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Collection, Sequence
from typing import Final

from rivermark.ingest.source.files.options import FileOptions

LONGEST_NAME: Final = 1_000
"""Characters of a column's name."""

LONGEST_HEADER: Final = 1 << 16
"""Characters of a header: each raw row carries its file's columns, so a longer line would cost its
length for every row behind it."""


class UnusableHeader(Exception):
    """A CSV file's first line names no columns."""


def first_line(start: bytes, encoding: str) -> str:
    """The first line that holds anything, without a byte order mark or its end.

    Lines end where the readers end them: bytes are split at LF, CR and CR LF only, while text
    would be split at U+2028, U+0085 and form feeds too.
    """
    lines = start.removeprefix(codecs.BOM_UTF8).splitlines()
    decoded = (line.decode(encoding, errors="replace").removeprefix("\ufeff") for line in lines)
    return next((line for line in decoded if line.strip()), "")


def csv_columns(
    start: bytes, options: FileOptions, wanted: Collection[str] | None
) -> tuple[tuple[str, ...], str | None]:
    """The columns of a CSV file, and its header line.

    A header that names no column of the contract is taken for a record: then the file has no
    columns, and all of its lines are quarantined. Where columns are declared, a first line of names
    is a header all the same, and its order counts.

    Raises:
        UnusableHeader: for a line that is too long, and for one that disagrees with what is
            declared.
    """
    line = first_line(start, options.encoding)
    if options.columns:
        names = cells_of(line, options.delimiter) if len(line) <= LONGEST_HEADER else ()
        return declared_columns(names, line, options.columns, wanted or ())
    if len(line) > LONGEST_HEADER:
        raise UnusableHeader(f"its first line has more than {LONGEST_HEADER} characters")
    names = cells_of(line, options.delimiter)
    if any(len(name) > LONGEST_NAME for name in names):
        raise UnusableHeader(f"a name has more than {LONGEST_NAME} characters")
    if wanted is not None and not any(name.lower() in wanted for name in names):
        return (), None
    return names, line


def declared_columns(
    names: tuple[str, ...], line: str, declared: tuple[str, ...], wanted: Collection[str]
) -> tuple[tuple[str, ...], str | None]:
    """The columns of a file whose columns are declared, by the cells of its first line."""
    lower = [name.lower() for name in names]
    known = {*wanted, *(name.lower() for name in declared)}
    hits = sum(name in known for name in lower)
    if not hits or hits * 2 < len(lower):
        return declared, None
    if len(lower) < len(declared) and _in_order(lower, declared):
        # Such as a column of row numbers that only the rows have: nothing speaks against what is
        # declared, and where the rows are as short, each is quarantined.
        return declared, None
    if hits < len(lower) or len({*lower}) < len(lower):
        raise UnusableHeader(
            f"its first line names {', '.join(names)}; declared are {', '.join(declared)}"
        )
    return names, line


def _in_order(names: Sequence[str], declared: Sequence[str]) -> bool:
    """Returns True if the names are some of the declared ones, in their order."""
    rest = iter([name.lower() for name in declared])
    return all(name in rest for name in names)


def cells_of(line: str, delimiter: str) -> tuple[str, ...]:
    """The cells of a header line, without spaces around them."""
    # Unquoted lines are cut here: the csv module refuses long values.
    cells = next(csv.reader([line], delimiter=delimiter), []) if '"' in line else None
    if cells is None:
        cells = line.split(delimiter) if line else []
    return tuple(cell.strip() for cell in cells)


def keys_of(line: str) -> tuple[str, ...] | None:
    """The keys of a JSON object, or None where the line is not one of reasonable length."""
    if len(line) > LONGEST_HEADER:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return tuple(value) if isinstance(value, dict) else None
