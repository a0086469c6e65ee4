"""Lines of CSV as columns of texts, by Arrow's reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from rivermark.ingest.parse.cutter import places_of
from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import lengths_of, with_text
from rivermark.ingest.parse.typed_json import FEWEST, Piece

Mask = npt.NDArray[np.bool_]
MOST_COLUMNS: Final = 1_000
MOST_WIDTHS: Final = 3
"""Numbers of values a line that are tried: of some years' files, most lines end in empty ones."""
ENDINGS: Final = ("\n", "\r", "\0")
"""Characters that Arrow takes for the end of a line, or of a text."""


def read(
    fields: Sequence[FieldColumn], lines: pa.StringArray, names: Sequence[str], delimiter: str
) -> Iterator[Piece]:
    """The lines that are read, in pieces with as many values a line."""
    place_of = places_of(names)
    wanted = [[place_of[key] for key in f.spelled.keys if key in place_of] for f in fields]
    used = {place for places in wanted for place in places}
    if len(delimiter.encode()) != 1 or len(names) > MOST_COLUMNS or not used:
        return
    rest = np.flatnonzero(_well_formed(lines, delimiter))
    for _ in range(MOST_WIDTHS):
        if len(rest) < FEWEST:
            return
        own = lines if len(rest) == len(lines) else lines.take(pa.array(rest))
        first = own[0].as_py()
        width = len(names) if '"' in first else first.count(delimiter) + 1
        if not len(names) <= width <= 2 * len(names):
            width = len(names)
        table, fits = _read(own, width, delimiter, used, len(names))
        yield rest[fits], [_first(table, places) for places in wanted]
        rest = rest[~fits]


def _well_formed(lines: pa.StringArray, delimiter: str) -> Mask:
    """Mask of the lines with quotes around whole values alone, and none within them."""
    good = pc.invert(pc.starts_with(lines, "\ufeff"))
    good = pc.and_(good, pa.array(lengths_of(lines) > 0))
    for ending in ENDINGS:
        if (held := with_text(lines, ending)) is not None:
            good = pc.and_not(good, held)
    if (quoted := with_text(lines, '"')) is not None:
        mark = re.escape(delimiter)
        value = f'(?:"[^"]*"|[^"{mark}]*)'
        plain = pc.match_substring_regex(lines, f"^{value}(?:{mark}{value})*$")
        good = pc.and_(good, pc.or_(pc.invert(quoted), plain))
    mask: Mask = good.to_numpy(zero_copy_only=False)
    return mask


def _read(
    lines: pa.StringArray, width: int, delimiter: str, wanted: set[int], count: int
) -> tuple[pa.Table, Mask]:
    """The wanted columns of lines with so many values, of which those behind `count` are empty."""
    fits: Mask = np.ones(len(lines), np.bool_)

    def skip(row: pcsv.InvalidRow) -> str:
        fits[row.number - 1] = False
        return "skip"

    behind = [str(n) for n in range(count, width)]
    chosen = [*(str(n) for n in sorted(wanted)), *behind]
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    table = pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(
            use_threads=False,
            column_names=[str(n) for n in range(width)],
            block_size=data.size + 2,
        ),
        pcsv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False, invalid_row_handler=skip),
        pcsv.ConvertOptions(
            check_utf8=False,
            include_columns=chosen,
            column_types=dict.fromkeys(chosen, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    for name in behind:
        if table[name].null_count < table.num_rows:
            empty = table[name].is_null()
            fits[np.flatnonzero(fits)] = empty.to_numpy()
            table = table.filter(empty)
    return table, fits


def _first(table: pa.Table, places: Sequence[int]) -> pa.Array:
    """The first text that each line has in some columns."""
    columns = [table[str(n)].combine_chunks() for n in dict.fromkeys(places)]
    if not columns:
        return pa.nulls(table.num_rows, pa.string())
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)
