"""R25: a value has one text in JSON, as a column of Arrow and as an object of Python."""

from __future__ import annotations

import json
import math
import random
import struct
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rivermark.lake.json_columns import SAMPLE, json_objects, plain_texts
from rivermark.model.json_text import json_text
from tests.oracles.columns_of_contracts import rows
from tests.seeds import seeds

US = pa.timestamp("us", "UTC")


def texts(column: pa.Array) -> list[str]:
    batch = pa.RecordBatch.from_arrays([column], ["v"])
    rows = json_objects(batch).to_pylist()
    return [row.removeprefix('{"v":').removesuffix("}") if row != "{}" else "" for row in rows]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.float32(), 1e10, "10000000000.0"),
        (pa.float64(), 1e10, "10000000000.0"),
        (pa.float64(), 1e15, "1000000000000000.0"),
        (pa.float64(), 1e16, "1e16"),
        (pa.float64(), 5e-06, "5e-6"),
        (pa.float64(), -0.0, "-0.0"),
        (pa.float64(), 7.0, "7.0"),
        (pa.float64(), -math.inf, '"-Infinity"'),
        (pa.float32(), math.nan, '"NaN"'),
        (pa.int64(), 9_007_199_254_740_993, "9007199254740993"),
        (pa.uint64(), 2**64 - 1, "18446744073709551615"),
        (pa.decimal128(12, 2), Decimal("12.50"), '"12.50"'),
        (pa.decimal128(38, 18), Decimal("0E-18"), '"0.000000000000000000"'),
        (US, datetime(2024, 3, 1, 10, tzinfo=UTC), '"2024-03-01T10:00:00Z"'),
        (US, datetime(2024, 3, 1, 10, 0, 0, 120, UTC), '"2024-03-01T10:00:00.000120Z"'),
        (pa.timestamp("ms"), datetime(1969, 12, 31, 23, 59, 59, 999_000), None),  # noqa: DTZ001
        (pa.date32(), date(1, 1, 1), '"0001-01-01"'),
        (pa.time64("us"), time(10, 0, 0, 1), '"10:00:00.000001"'),
        (pa.time32("s"), time(10), '"10:00:00"'),
        (pa.binary(), b"\xff\x00", '"/wA="'),
        (pa.string(), 'a"b\\\n\x1f\u2028\ufffd', None),
        (pa.bool_(), True, "true"),
        (pa.list_(pa.float64()), [1e10, None], "[10000000000.0,null]"),
        (pa.struct({"a b": pa.int8(), "c": US}), {"a b": 1, "c": None}, '{"a b":1,"c":null}'),
    ],
)
def test_r25_a_value_has_one_text(kind: pa.DataType, value: Any, text: str | None) -> None:
    written = json_text(value).decode()
    assert text in (None, written)
    if pa.types.is_decimal(kind):
        written = written.strip('"')
    # Of a column that repeats itself, and of one that does not.
    assert texts(pa.array([value, None], kind)) == [written, ""]
    assert texts(pa.array([value] * 3 * SAMPLE, kind)) == [written] * 3 * SAMPLE
    if isinstance(json.loads(written), str):
        assert plain_texts(pa.array([value], kind)).to_pylist() == [json.loads(written)]


def test_r25_doubles_of_any_size_have_one_text() -> None:
    draw = random.Random(25)
    doubles = [draw.uniform(-1, 1) * 10 ** draw.randint(-20, 25) for _ in range(5_000)]
    doubles += [struct.unpack("d", draw.randbytes(8))[0] for _ in range(5_000)]
    doubles += [float(draw.randint(-(10**17), 10**17)) for _ in range(2_000)]
    assert texts(pa.array(doubles)) == [json_text(each).decode() for each in doubles]
    singles = np.array(doubles[:5_000], np.float32)
    own = [json_text(float(str(each))).decode() for each in singles]
    assert texts(pa.array(singles)) == own


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_r25_times_have_one_text_beyond_the_year_9999_too(unit: str, zone: str | None) -> None:
    draw = random.Random(9999)
    second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    most = 253_402_300_799 * second if unit != "ns" else 2**62
    least = -62_135_596_800 * second if unit != "ns" else -(2**62)
    ticks = [draw.randint(least, most) for _ in range(200)]
    zoned = UTC if zone else None
    wanted = []
    for tick in ticks:
        seconds, rest = divmod(tick, second)
        days, of_day = divmod(seconds, 86_400)
        whole = datetime.combine(date.fromordinal(719_163 + days), time(), zoned)
        at = whole.replace(
            hour=of_day // 3600, minute=of_day // 60 % 60, second=of_day % 60,
            microsecond=rest * 10**6 // second,
        )  # fmt: skip
        wanted.append(json_text(at).decode())
    assert texts(pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))) == wanted
    if unit == "us":
        far = pa.array([253_402_300_800 * second + 5, -62_135_596_801 * second, None], pa.int64())
        utc = "Z" if zone else ""
        assert texts(far.cast(pa.timestamp(unit, zone))) == [
            f'"+10000-01-01T00:00:00.000005{utc}"', f'"0000-12-31T23:59:59{utc}"', ""
        ]  # fmt: skip


def test_a_map_is_an_object_and_keeps_a_key_that_is_there_twice() -> None:
    column = pa.array([[("k", 1), ("k", None)], [], None], pa.map_(pa.string(), pa.int64()))
    assert texts(column) == ['{"k":1,"k":null}', "{}", ""]
    numbers = pa.array([[(1, b"\xff")]], pa.map_(pa.int32(), pa.binary()))
    assert texts(numbers) == ['{"1":"/w=="}']


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_rows_are_the_same_in_parts_of_any_size(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = rows(seed, 3 * SAMPLE)
    whole = json_objects(batch)
    parts = [batch.slice(first, 99) for first in range(0, batch.num_rows, 99)]
    assert whole.equals(pa.concat_arrays([json_objects(part) for part in parts]))
    monkeypatch.setattr("rivermark.lake.json_columns.MOST_BYTES", batch.nbytes // 5)
    assert whole.equals(json_objects(batch))
