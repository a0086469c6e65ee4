"""JSON lines as columns, by Arrow's reader with an explicit schema.

The schema is that of some of the lines. Where another one fails it, the lines are held to patterns
of the usual ones, and those that match are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as t

from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import bytes_of, has_exponent, holds

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Piece = tuple[Places, list[pa.Array]]
"""Lines by their places, and for each field their texts, or their values already."""
Types = Mapping[str, pa.DataType]

SAMPLES: Final = 4
MOST_KEYS: Final = 200
MOST_SHAPES: Final = 4
"""Kinds of lines that are looked for; those of others are asked for."""
FEWEST: Final = 12
"""Lines from which on it takes less time than to ask for each."""
MOST_NESTED: Final = 64
"""Brackets of a line: deep ones are left to the parser that counts their levels."""
NUMBER: Final = r"-?(?:0|[1-9][0-9]{0,19})(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?"
ESCAPE: Final = r'\\(?:["\\/bfnrt]|u(?:[0-9a-cefA-CEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}))'
TEXT: Final = rf'"(?:[^"\\\x00-\x1f]|{ESCAPE})*"'
DIGITS: Final = {16: 4, 32: 9, 64: 18}
"""Digits of which each number fits the bits of a whole one."""
ANY: Final = f"{TEXT}|{NUMBER}|true|false|null"
PAIR: Final = re.compile(rf'("([^"\\]*)"[ \t]*:[ \t]*)(?:{ANY})(?=[ \t]*[,}}])')
NO_NUMBER: Final = r"[0-9.][eE][+-]?[0-9]{4}|NaN|Inf"
"""Spellings that Arrow reads as numbers, and the parser does not."""
TYPE_OF: Final = {
    "text": pa.string(),
    "number": pa.float64(),
    "bool": pa.bool_(),
    "null": pa.null(),
}


@dataclass(frozen=True)
class Layout:
    """The keys of a line with the kinds of their values, and those that each field looks up."""

    kinds: Mapping[str, str]
    keys: Sequence[Sequence[str]]

    @property
    def used(self) -> set[str]:
        """The keys that a field looks up."""
        return {key for own in self.keys for key in own}


def read(fields: Sequence[FieldColumn], lines: pa.StringArray) -> Iterator[Piece]:
    """The lines that are read, in pieces that are read alike."""
    rest = np.flatnonzero(_single_objects(lines))
    if not len(rest):
        return
    layout = _common(fields, lines, rest)
    types = None if layout is None else _direct(fields, layout)
    if layout is not None and types is not None and "nested" not in layout.kinds.values():
        others = {key: TYPE_OF[kind] for key, kind in layout.kinds.items() if key not in types}
        table = _read_json(_taken(lines, rest), {**types, **others}, closed=True)
        if table is not None:
            yield rest, _columns(table, layout)
            return
    yield from _by_shape(fields, lines, rest)


def _single_objects(lines: pa.StringArray) -> Mask:
    """Lines that begin and end as an object, so that none goes on in the next."""
    good = pc.and_(pc.starts_with(lines, "{"), pc.ends_with(lines, "}"))
    data = bytes_of(lines)
    for bracket, most in (("{", len(lines)), ("[", 0)):
        if np.count_nonzero(data == ord(bracket)) > most:
            good = pc.and_(good, pc.less(pc.count_substring(lines, bracket), MOST_NESTED))
    if has_exponent(data) or holds(data, b"NaN") or holds(data, b"Inf"):
        good = pc.and_not(good, pc.match_substring_regex(lines, NO_NUMBER))
    mask: Mask = good.to_numpy(zero_copy_only=False)
    return mask


def _common(fields: Sequence[FieldColumn], lines: pa.StringArray, rows: Places) -> Layout | None:
    """The layout of some of the lines; None where they do not agree."""
    kinds: dict[str, str] = {}
    for row in _samples(rows):
        for key, kind in _kinds(lines[row].as_py()).items():
            if kinds.setdefault(key, kind) == "null":
                kinds[key] = kind
            elif kind not in ("null", kinds[key]):
                return None
    return _layout(fields, kinds)


def _samples(rows: Places) -> list[int]:
    places = np.linspace(0, len(rows) - 1, SAMPLES, dtype=int)
    return [*dict.fromkeys(rows[places].tolist())]


def _kinds(line: str) -> dict[str, str]:
    """The keys of an object and what their values are; nothing of a line that is none."""
    try:
        values = json.loads(line, parse_float=_Number, parse_int=_Number)
    except (ValueError, RecursionError):
        return {}
    return {key: _kind(value) for key, value in values.items()} if isinstance(values, dict) else {}


class _Number(str):
    """The text of a number."""


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case _Number():
            return "number"
        case str():
            return "text"
        case _:
            return "nested"


def _layout(fields: Sequence[FieldColumn], kinds: Mapping[str, str]) -> Layout | None:
    """The keys that fields look up; None where that differs from line to line, or is no text."""
    spellings = {s.lower() for f in fields for s in f.spelled.spellings}
    known = [key for key in kinds if key.lower() in spellings]
    lower = {key.lower(): key for key in known}
    if not kinds or len(kinds) > MOST_KEYS or len(lower) < len(known):
        return None
    keys = []
    for field in fields:
        names = (key if key in kinds else lower.get(key) for key in field.spelled.keys)
        keys.append([*dict.fromkeys(key for key in names if key is not None)])
    layout = Layout(kinds, keys)
    return None if any(kinds[key] == "nested" for key in layout.used) else layout


def _direct(fields: Sequence[FieldColumn], layout: Layout) -> dict[str, pa.DataType] | None:
    """The types by which keys are read; None where a number's text is needed."""
    types: dict[str, pa.DataType] = {}
    for field, keys in zip(fields, layout.keys, strict=True):
        for key in keys:
            own = field.direct(layout.kinds[key])
            if own is None or types.setdefault(key, own) != own:
                return None
        if len({types[key] for key in keys}) > 1:
            return None
    return types


def _read_json(lines: pa.StringArray, types: Types, *, closed: bool) -> pa.Table | None:
    """The columns of lines; None where one of them fails the schema.

    `closed` tells whether other keys fail it, too: they may be spellings in another letter case.
    """
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    try:
        table = pj.read_json(
            pa.BufferReader(data),
            pj.ReadOptions(use_threads=False, block_size=data.size + 1),
            pj.ParseOptions(
                explicit_schema=pa.schema([*types.items()]),
                unexpected_field_behavior="error" if closed else "ignore",
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table.combine_chunks() if table.num_rows == len(lines) else None


def _columns(table: pa.Table, layout: Layout) -> list[pa.Array]:
    """The first value of each field."""
    arrays = []
    for keys in layout.keys:
        own = [table[key].combine_chunks() for key in keys]
        first = own[0] if own else pa.nulls(table.num_rows, pa.string())
        arrays.append(first if len(own) < 2 else pc.coalesce(*own))
    return arrays


def _by_shape(
    fields: Sequence[FieldColumn], lines: pa.StringArray, rest: Places
) -> Iterator[Piece]:
    """Lines that match the pattern of one of them."""
    tried: set[str] = set()
    for _ in range(MOST_SHAPES):
        if len(rest) < FEWEST:
            return
        samples = [lines[row].as_py() for row in _samples(rest)]
        shapes = ((line, _layout(fields, _kinds(line))) for line in samples if line not in tried)
        line, layout = next(((line, own) for line, own in shapes if own), ("", None))
        if layout is None:
            return
        tried.add(line)
        for types in (_direct(fields, layout), None):
            pattern = _pattern(line, dict.fromkeys(layout.used) if types is None else types)
            fits = pc.match_substring_regex(_taken(lines, rest), pattern).to_numpy(
                zero_copy_only=False
            )
            if not fits.any():
                continue
            own, read_as = lines.take(pa.array(rest[fits])), types
            if read_as is None:
                own = _in_quotes(own, layout.used)
                read_as = dict.fromkeys(layout.used, pa.string())
            table = _read_json(own, read_as, closed=False)
            if table is not None:
                yield rest[fits], _columns(table, layout)
            rest = rest[~fits]
            if len(rest) < FEWEST:
                return


def _pattern(line: str, types: Mapping[str, pa.DataType | None]) -> str:
    """Pattern of the lines with the keys of this one, in its order and its spelling.

    The values of `types` are spelled so that Arrow reads them, or anyhow for None.
    """
    parts, at = ["^"], 0
    for pair in PAIR.finditer(line):
        value = ANY if (kind := types.get(pair[2])) is None else _spelled(kind)
        parts += [re.escape(line[at : pair.start()]), re.escape(pair[1]), f"(?:{value})"]
        at = pair.end()
    return "".join([*parts, re.escape(line[at:]), "$"])


def _spelled(kind: pa.DataType) -> str:
    if t.is_boolean(kind):
        return "true|false|null"
    if t.is_string(kind):
        return f"{TEXT}|null"
    if t.is_floating(kind):
        return f"{NUMBER}|null"
    most = kind.precision - kind.scale if t.is_decimal(kind) else DIGITS[kind.bit_width]
    whole = f"(?:0|[1-9][0-9]{{0,{most - 1}}})" if most else "0"
    fraction = rf"(?:\.[0-9]{{1,{kind.scale}}})?" if t.is_decimal(kind) and kind.scale else ""
    return f"-?{whole}{fraction}|null"


def _in_quotes(lines: pa.StringArray, keys: set[str]) -> pa.StringArray:
    """The lines with the numbers and words of some keys as texts."""
    names = "|".join(map(re.escape, sorted(keys)))
    pattern = rf'("(?:{names})"[ \t]*:[ \t]*)({NUMBER}|true|false)'
    return pc.replace_substring_regex(lines, pattern, r'\1"\2"')


def _taken(lines: pa.StringArray, rows: Places) -> pa.StringArray:
    return lines if len(rows) == len(lines) else lines.take(pa.array(rows))
