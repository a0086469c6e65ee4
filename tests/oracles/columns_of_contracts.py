"""Arrow rows for the contract of `lines_of_contracts`: plain and hostile columns, by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from tests.oracles.lines_of_contracts import EVERYTHING, INTEGERS, OTHERS, TIMES

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
DOUBLES: Final = (
    *(0.0, -0.0, 0.1 + 0.2, -2.675, 1.0049999, 12.25, -3.0, 7.0, 1e-7, 123456789012.5, 1e15, 1e16),
    *(1e22, -1e-5, 5e-324, 1.7976931348623157e308, 9999999999.995, 2.0**53 + 2, 21.700000000000003),
    *(float("nan"), float("inf"), float("-inf"), 1.5, 2.5, 16777217.0, 340282350000000000.0),
)
LONGS: Final = (0, 1, -1, 7, 60, 127, 32767, 32768, -(2**31), 2**31, 10**17, 10**18, 2**63 - 1)
MOMENTS: Final = tuple(
    (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    for text in (
        *("1969-12-31T23:59:59.999999", "1970-01-01", "2024-05-01T12:00:00.5", "2024-02-29"),
        *("2024-03-10T02:30:00", "2024-03-10T03:00:00", "2024-11-03T01:30:00", "2024-07-01"),
        *("1582-10-10", "1583-01-01", "0001-01-01", "9999-12-31T23:59:59.999999", "2038-02-01"),
    )
)
Values = Sequence[Any]


def _times(unit: str, zone: str | None) -> Callable[[random.Random, int], pa.Array]:
    scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[unit]
    more = 1_000 if unit == "ns" else 1
    wild = [2**62, -(2**62)] if unit in ("ms", "us") else []
    moments = [m for m in MOMENTS if unit != "ns" or abs(m) < 2**53]

    def column(draw: random.Random, count: int) -> pa.Array:
        some = [m // scale * more for m in moments]
        some += wild if draw.random() < 0.2 else []
        some += [draw.randint(17 * 10**14, 18 * 10**14) // scale * more for _ in range(3)]
        if draw.random() < 0.5:
            # None that repeats.
            some = [draw.randint(17 * 10**14, 18 * 10**14) // scale * more for _ in range(count)]
        return pa.array(draw.choices(some, k=count), pa.int64()).cast(pa.timestamp(unit, zone))

    return column


def _recent(unit: str, zone: str | None) -> Callable[[random.Random, int], pa.Array]:
    scale = {"ms": 1_000, "us": 1, "ns": 1}[unit]
    more = 1_000 if unit == "ns" else 1

    def column(draw: random.Random, count: int) -> pa.Array:
        some = draw.choice((5, count))
        moments = [draw.randint(1_710_100_000, 1_730_000_000) * 10**6 + n for n in range(some)]
        times = [m // scale * more for m in draw.choices(moments, k=count)]
        return pa.array(times, pa.int64()).cast(pa.timestamp(unit, zone))

    return column


def _of(values: Values, kind: pa.DataType) -> Callable[[random.Random, int], pa.Array]:
    return lambda draw, count: pa.array(draw.choices(values, k=count), kind)


def _doubles(kind: pa.DataType) -> Callable[[random.Random, int], pa.Array]:
    def column(draw: random.Random, count: int) -> pa.Array:
        finite = [v for v in DOUBLES if abs(v) < 1e30 and abs(v) > 1e-30] + [0.0, -0.0]
        values: Values = DOUBLES if draw.random() < 0.3 else finite
        if draw.random() < 0.3:
            values = [round(draw.uniform(-100, 100), draw.randint(0, 12)) for _ in range(count)]
        return pa.array(draw.choices(values, k=count), pa.float64()).cast(kind)

    return column


def _decimals(kind: pa.DataType) -> Callable[[random.Random, int], pa.Array]:
    def column(draw: random.Random, count: int) -> pa.Array:
        most = 10 ** draw.randint(1, kind.precision) - 1
        few = [Decimal(draw.randint(-most, most)).scaleb(-kind.scale) for _ in range(20)]
        return pa.array(draw.choices([*few, Decimal(0).scaleb(-kind.scale)], k=count), kind)

    return column


INTS: Final = tuple(
    _of([v for v in LONGS if -(2 ** (bits - 1)) <= v < 2 ** (bits - 1)], kind)
    for bits, kind in ((8, pa.int8()), (16, pa.int16()), (32, pa.int32()), (64, pa.int64()))
)
NUMBERS: Final = (
    *INTS,
    _of([0, 5, 2**64 - 1], pa.uint64()),
    *map(_doubles, (pa.float64(), pa.float64(), pa.float32())),
    *map(_decimals, (pa.decimal128(9, 3), pa.decimal128(38, 20), pa.decimal256(50, 2))),
)
CLOCKS: Final = tuple(
    _times(unit, zone)
    for unit in ("s", "ms", "us", "ns")
    for zone in (None, "UTC", "America/New_York")
)
HOSTILE: Final = (
    *(_of(texts, pa.string()) for texts in (INTEGERS, TIMES, OTHERS)),
    _of(OTHERS, pa.large_string()),
    _of([text.encode() for text in OTHERS] + [b"\xff", b"a\xe9"], pa.binary()),
    _of([b"abcd", b"1234", b"\xff\x00ab"], pa.binary(4)),
    _of([True, False], pa.bool_()),
    _of([0, 19_000, -719_162, 10**7], pa.date32()),
    _of([0, 1, 86_399_999_999], pa.time64("us")),
    _of([1, -7], pa.duration("ms")),
    _of([[1, 2], []], pa.list_(pa.int64())),
    _of([{"a": 1}], pa.struct([("a", pa.int64())])),
    lambda draw, count: pa.nulls(count),
    lambda draw, count: pa.array(draw.choices(OTHERS, k=count)).dictionary_encode(),
    *NUMBERS,
    *CLOCKS,
)
TEXTS: Final = (
    _of(["short", "a longer text", "with, comma", "Zoë", "NA", "-1", ""], pa.string()),
    _of(["short", "x", "card", "Cash", "1", "0.0"], pa.large_string()),
    lambda draw, count: pa.array([f"n{draw.randint(0, 10**6)}" for _ in range(count)]),
)
PLAIN: Final[dict[str, Sequence[Callable[[random.Random, int], pa.Array]]]] = {
    **dict.fromkeys(("id", "count", "little", "code", "narrow"), (*INTS, _doubles(pa.float64()))),
    **dict.fromkeys(("price", "exact", "comma", "ratio", "single"), NUMBERS),
    **dict.fromkeys(("at", "wall", "berlin"), CLOCKS),
    "at": (_times("us", None), _times("us", "UTC"), _times("ms", None)),
    "tick": (_of([1_704_067_200_000, 1_704_067_200_001, 5], pa.int64()),),
    "flag": (_of([True, False], pa.bool_()), _of(["t", "f", "-", "Yes"], pa.string())),
    **dict.fromkeys(("text", "note", "paid"), TEXTS),
}
SMALL: Final = (0.0, -0.0, 12.25, -3.0, 7.0, 1.5, 0.1 + 0.2, -2.675)
FEW: Final = tuple(_of([0, 1, 7, 60, 127], kind) for kind in (pa.int8(), pa.int64(), pa.uint64()))
AMOUNTS: Final = (*FEW, _of(SMALL, pa.float64()), _of([Decimal("-1.250")], pa.decimal128(9, 3)))
RECENT: Final = tuple(
    _recent(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo")
)
MILD: Final[dict[str, Sequence[Callable[[random.Random, int], pa.Array]]]] = {
    **dict.fromkeys(("id", "count", "little", "code", "narrow"), (*FEW, _of([5.0], pa.float64()))),
    **dict.fromkeys(("price", "exact", "ratio", "single"), AMOUNTS),
    "comma": (*FEW, _of(["12,5", "-3"], pa.string())),
    **dict.fromkeys(("at", "wall", "berlin"), RECENT),
    "tick": (_of([1_704_067_200_000, 1_704_067_200_001], pa.int64()),),
    "flag": (_of([True, False], pa.bool_()), _of(["t", "f", "-"], pa.string())),
    **dict.fromkeys(("text", "note", "paid"), TEXTS),
}
"""Columns of which hardly a row is asked for."""


def rows(seed: int, count: int) -> pa.RecordBatch:
    """Rows with nulls, other columns and other spellings; of odd seeds most are plain."""
    draw = random.Random(seed)
    columns: list[tuple[str, pa.Array]] = []
    usual = MILD if seed % 2 else PLAIN
    hostile = 0.0 if seed % 2 else draw.choice((0.0, 0.05, 0.3))
    for field in EVERYTHING.fields:
        is_needed = field.required and bool(seed % 2)
        if field.name == "text_again" or (not field.required and draw.random() < 0.1):
            continue
        names = [field.name, *field.names]
        for name in draw.sample(names, min(len(names), draw.choice((1, 1, 1, 2)))):
            makers = HOSTILE if draw.random() < hostile else usual[field.name]
            spelled = name if draw.random() < 0.9 else draw.choice((name.upper(), name.title()))
            column = draw.choice(makers)(draw, count)
            columns.append((spelled, column if is_needed else _with_nulls(draw, column)))
    if draw.random() < 0.3:
        makers = HOSTILE if draw.random() < 0.5 else TEXTS
        name = draw.choice(("more", 'quo"te', "ID", "Text"))
        columns.append((name, draw.choice(makers)(draw, count)))
    draw.shuffle(columns)
    return pa.RecordBatch.from_arrays([c for _, c in columns], [name for name, _ in columns])


def _with_nulls(draw: random.Random, column: pa.Array) -> pa.Array:
    share = draw.choice((0.0, 0.0, 0.05, 0.9))
    if not share:
        return column
    places = [None if draw.random() < share else n for n in range(len(column))]
    return column.take(pa.array(places, pa.int64()))
