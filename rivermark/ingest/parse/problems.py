"""Reasons for which rows are quarantined, and their details."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.cutter import (
    MALFORMED,
    NO_KNOWN_COLUMN,
    TOO_LARGE,
    UNDECODABLE,
    UNPARSABLE,
    WRONG_NUMBER,
)
from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import REPLACED
from rivermark.model.contract import Contract
from rivermark.model.time import MICROSECOND, micros_of

Mask = npt.NDArray[np.bool_]
Reason = tuple[str, Mask]

PROBLEMS: Final = "_problems"
DETAILS: Final = "_details"
SHOWN: Final = 200
"""Characters of a text that are shown."""
IMPOSSIBLE: Final = datetime(10, 1, 1, tzinfo=UTC)
"""Event times before it are no times: near year 1 a zone leads out of what Python can hold."""

ONE_A_LINE: Final = "the source expects one JSON object a line; "
START: Final = "^\ufeff?\\s*+"
REST: Final = "[^\n\r\x85\u2028\u2029]*"
LINES: Final = tuple(
    (re.compile(pattern, re.ASCII), text)
    for pattern, text in (
        (
            START + r"(\[|\]\s*$|\{" + REST + r"\}\s*,\s*$)",
            "this one belongs to an array: write each of its objects on a line of its own, without "
            "brackets and commas around",
        ),
        (START + r"\{" + REST + r"\}\s*$", "this one is an object that is not well-formed"),
        (
            START + r"(\{|\}|\]|\"[^\"]*\"\s*:)",
            "this one is a part of an object that goes over several: write it on one line",
        ),
        (
            r"^[^{}\[\]:,;\t]*+[,;\t]",
            "this one looks like CSV: write format='csv' in its FileSource",
        ),
    )
)
"""Looks of lines that are no object, each with what to do then. Their cost grows with a line's
length and not with its square: of a million spaces it would be hours."""


def line_reasons(payloads: pa.Array, malformed: pa.Array) -> Iterator[Reason]:
    """The reasons of lines that are no record, or whose characters are not what was written."""
    for reason in (UNPARSABLE, WRONG_NUMBER, NO_KNOWN_COLUMN, TOO_LARGE):
        yield reason, mask_of(pc.equal(malformed, reason))
    replaced = pc.match_substring(payloads, REPLACED)
    yield UNDECODABLE, mask_of(replaced) | mask_of(pc.equal(malformed, UNDECODABLE))


def field_reasons(
    fields: Sequence[FieldColumn], cells: pa.StructArray, values: Sequence[pa.Array]
) -> Iterator[Reason]:
    """The reasons of texts that cannot be read, and of those that are missing."""
    whole = cells.field(MALFORMED).is_null()
    for field, column in zip(fields, values, strict=True):
        texts = cells.field(field.name)
        unreadable = pc.and_(texts.is_valid(), column.is_null())
        yield f"unreadable_{field.name}", mask_of(pc.and_(whole, unreadable))
        if field.required:
            yield f"missing_{field.name}", mask_of(pc.and_(whole, texts.is_null()))


def time_reasons(contract: Contract, times: pa.Array, landed: pa.Array) -> Iterator[Reason]:
    """The reasons of event times that are out of bounds."""
    known = mask_of(times.is_valid())
    micros = _micros(times)
    first = micros_of(contract.earliest)
    impossible = known & (micros < micros_of(IMPOSSIBLE))
    yield "event_time_impossible", impossible
    yield "event_time_too_early", known & ~impossible & (micros < first)
    latest = _micros(landed) + contract.max_ahead // MICROSECOND
    yield "event_time_ahead", known & mask_of(landed.is_valid()) & (micros > latest)


def details_of(
    fields: Sequence[FieldColumn],
    payloads: pa.Array,
    cells: pa.StructArray,
    values: Sequence[pa.Array],
) -> pa.Array:
    """The texts that could not be read as 'field=text', or what a line that is no object seems."""
    shown: list[list[str]] = [[] for _ in range(len(payloads))]
    for field, column in zip(fields, values, strict=True):
        texts = cells.field(field.name)
        for row in pc.indices_nonzero(pc.and_(texts.is_valid(), column.is_null())).to_pylist():
            shown[row].append(f"{field.name}={texts[row].as_py()[:SHOWN]}")
    details = ["; ".join(each) for each in shown]
    malformed = cells.field(MALFORMED)
    for row in pc.indices_nonzero(malformed.is_valid()).to_pylist():
        is_unparsable = malformed[row].as_py() == UNPARSABLE
        details[row] = ONE_A_LINE + _seems(payloads[row].as_py() or "") if is_unparsable else ""
    return pa.array(details, pa.string())


def _seems(line: str) -> str:
    seems = (text for pattern, text in LINES if pattern.search(line))
    return next(seems, "this line is none")


def names_of(reasons: Iterable[Reason], count: int) -> pa.Array:
    """For each row the names of the reasons that it has, in their order."""
    some = [(name, mask) for name, mask in reasons if mask.any()]
    if not some:
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string())
        )
    which = np.column_stack([mask for _, mask in some])
    _, reason = np.nonzero(which)
    ends = np.concatenate([[0], np.cumsum(which.sum(axis=1))]).astype(np.int32)
    names = pa.array([name for name, _ in some], pa.string()).take(pa.array(reason))
    return pa.ListArray.from_arrays(pa.array(ends), names)


def mask_of(values: pa.Array | pa.ChunkedArray) -> Mask:
    """A mask of true values; null is none."""
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


def _micros(times: pa.Array) -> npt.NDArray[np.int64]:
    micros: npt.NDArray[np.int64] = pc.fill_null(
        times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), 0
    ).to_numpy()
    return micros
