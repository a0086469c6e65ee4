"""Parquet rows as JSON, with Python's json and pyarrow as the oracle: cases N004, N026 to N030."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rivermark.ingest.source.files.file_probe import probe_file
from rivermark.ingest.source.files.pieces import parquet_records
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.sources import FileSource

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PARQUET = FileSource(folder="f", format="parquet")


def payloads(
    tmp_path: Path, table: pa.Table, wanted: Collection[str] | None = None, **options: Any
) -> list[str]:
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, **options)
    return [
        text for batch in parquet_records(str(path), wanted) for text in batch.payloads.to_pylist()
    ]


def values(tmp_path: Path, column: pa.Array, **options: Any) -> list[str]:
    """The JSON text of each value of one column."""
    rows = payloads(tmp_path, pa.table({"v": column}), **options)
    return [row.removeprefix('{"v":').removesuffix("}") for row in rows]


def test_n004_decimals_keep_every_digit(tmp_path: Path) -> None:
    draw = random.Random(4)
    for kind in (pa.decimal128(38, 18), pa.decimal256(50, 2), pa.decimal128(9, 0)):
        most = 10**kind.precision - 1
        numbers = [Decimal(draw.randint(-most, most)).scaleb(-kind.scale) for _ in range(99)]
        with_edges = [*numbers, Decimal(0).scaleb(-kind.scale), Decimal(1).scaleb(-kind.scale)]
        found = values(tmp_path, pa.array([*with_edges, None], kind))
        assert found[-1] == "{"
        assert [Decimal(text.strip('"')) for text in found[:-1]] == with_edges
        assert not any("E" in text for text in found)


def test_n004_longs_and_doubles_are_exact(tmp_path: Path) -> None:
    longs = [2**63 - 1, -(2**63), 9_007_199_254_740_993, 0]
    assert values(tmp_path, pa.array(longs)) == [str(n) for n in longs]
    draw = random.Random(5)
    doubles = [draw.uniform(-1, 1) * 10 ** draw.randint(-300, 300) for _ in range(999)]
    doubles += [5.0, 0.1, 1e22, 5e-324, -0.0, 12345678.0]
    found = values(tmp_path, pa.array(doubles))
    assert [json.loads(text) for text in found] == doubles
    assert all(isinstance(json.loads(text), float) for text in found)
    assert values(tmp_path, pa.array([math.nan, math.inf, -math.inf])) == [
        '"NaN"', '"Infinity"', '"-Infinity"'
    ]  # fmt: skip


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_n026_nanoseconds_are_floored_to_the_microsecond(tmp_path: Path, zone: str | None) -> None:
    draw = random.Random(26)
    numbers = [draw.randint(-(2**60), 2**60) for _ in range(400)]
    numbers += [n * 1_000_000 for n in range(400)] + [-1, -1_000, 186_000_000, 2**63 - 1]
    column = pa.array(numbers, pa.int64()).cast(pa.timestamp("ns", zone))
    found = values(tmp_path, column, version="2.6")

    for number, text in zip(numbers, found, strict=True):
        expected = EPOCH + timedelta(microseconds=number // 1_000)
        wall = expected.replace(tzinfo=None).isoformat()
        assert text == f'"{wall}{"Z" if zone else ""}"'


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_of_the_years_1_to_9999_are_times_and_no_others(tmp_path: Path, unit: str) -> None:
    second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    first, last = -62_135_596_800 * second, 253_402_300_800 * second - 1
    numbers = [first, last, first - 1, last + 1, 0, None]
    found = values(tmp_path, pa.array(numbers, pa.timestamp(unit, "UTC")))

    assert found[0] == '"0001-01-01T00:00:00Z"'
    assert found[1].startswith('"9999-12-31T23:59:59')
    assert found[2].startswith('"0000-12-31T23:59:59')
    assert found[3:] == ['"+10000-01-01T00:00:00Z"', '"1970-01-01T00:00:00Z"', "{"]


@pytest.mark.parametrize("year", [1678, 1970, 2024, 2261])
def test_n027_int96_is_an_instant(tmp_path: Path, year: int) -> None:
    moment = datetime(year, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)
    column = pa.array([moment] * 2, pa.timestamp("us"))
    found = values(tmp_path, column, use_deprecated_int96_timestamps=True)

    assert found == [f'"{year}-03-01T10:00:00.123456Z"'] * 2


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_n029_bytes_are_text_where_they_are_utf8(tmp_path: Path, kind: pa.DataType) -> None:
    texts = ["s", "", "Ü日", 'a"b\\c', "\n\t\x00\x1f\x7f", "\u2028"]
    column = pa.array([*(text.encode() for text in texts), None], pa.binary()).cast(kind)

    found = values(tmp_path, column)
    assert [json.loads(text) for text in found[:-1]] == texts
    assert found[-1] == "{"


def test_n029_bytes_that_are_no_utf8_are_unreadable_where_they_matter_and_base64_elsewhere(
    tmp_path: Path,
) -> None:
    table = pa.table({"Note": pa.array([b"\xe9", b"ok"]), "geom": pa.array([b"\xff\x00", b"ok"])})

    assert payloads(tmp_path, table, wanted={"note"}) == [
        '{"Note":"\ufffd","geom":"/wA="}',
        '{"Note":"ok","geom":"ok"}',
    ]
    fixed = pa.array([b"abcd"], pa.binary(4))
    assert values(tmp_path, fixed) == ['"abcd"']


def test_n029_a_uuid_is_its_text(tmp_path: Path) -> None:
    ids = [UUID(int=5), UUID(bytes=b"0123456789abcdef")]
    stored = pa.array([each.bytes for each in ids], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), stored)

    assert values(tmp_path, column) == [f'"{each}"' for each in ids]


def test_n030_columns_of_every_type_and_name_are_read(tmp_path: Path) -> None:
    columns: dict[str, pa.Array] = {
        "time": pa.array([time(10, 0, 0, 1)], pa.time64("us")),
        "half": pa.array(np.array([1.5], np.float16)),
        "_metadata": pa.array(["m"]),
        "back`tick": pa.array([1]),
        'quo"te': pa.array([2]),
        "At": pa.array(["1"]),
        "at": pa.array(["2"]),
        "wait": pa.array([7], pa.duration("us")),
        "day": pa.array([date(2024, 3, 1)]),
        "far": pa.array([10**7], pa.int32()).cast(pa.date32()),
        "none": pa.nulls(1),
        "flag": pa.array([True]),
        "list": pa.array([[1, None]]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"a": Decimal("1.10"), "b": None}]),
        "coded": pa.array(["x"]).dictionary_encode(),
        "unsigned": pa.array([2**64 - 1], pa.uint64()),
    }
    (row,) = payloads(tmp_path, pa.table(columns), wanted=set())

    assert json.loads(row) == {
        "time": "10:00:00.000001", "half": 1.5, "_metadata": "m", "back`tick": 1, 'quo"te': 2,
        "At": "1", "at": "2", "wait": "7 us", "day": "2024-03-01", "far": "+29349-01-26",
        "flag": True, "list": [1, None], "map": {"k": 1},
        "struct": {"a": "1.10", "b": None}, "coded": "x", "unsigned": 2**64 - 1,
    }  # fmt: skip


def test_rows_come_in_order_from_groups_and_batches_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.ingest.source.files.pieces.ROWS", 7)
    monkeypatch.setattr("rivermark.lake.json_columns.MOST_BYTES", 50)
    table = pa.table({"n": [*range(100)], "odd": [n if n % 2 else None for n in range(100)]})

    found = [json.loads(text) for text in payloads(tmp_path, table, row_group_size=30)]
    assert found == [{"n": n, "odd": n} if n % 2 else {"n": n} for n in range(100)]
    empty = pa.table({"n": pa.array([None, None], pa.int64())})
    assert payloads(tmp_path, empty) == ["{}", "{}"]


def test_a_damaged_file_raises_or_has_all_its_rows(tmp_path: Path) -> None:
    draw = random.Random(52)
    path = tmp_path / "a.parquet"
    table = pa.table({"s": [f"s{n % 7}" for n in range(300)], "v": [n / 3 for n in range(300)]})
    pq.write_table(table, path, row_group_size=100)
    content = path.read_bytes()
    raised = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[draw.randrange(len(damaged))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        probe = probe_file(fs.LocalFileSystem(), str(path), len(damaged), PARQUET)
        if probe.status == "rejected":
            continue
        try:
            assert sum(len(batch) for batch in parquet_records(str(path), None)) == 300
        except (OSError, ValueError):
            raised += 1
    assert raised > 20


def test_a_wild_time_within_a_nested_value_costs_its_row_alone(tmp_path: Path) -> None:
    far = {"ms": "+36536598-01-28T21:54:06.976000", "us": "+38504-08-17T21:30:06.846976"}
    for unit in ("ms", "us"):
        moments = pa.array([[2**60, 0], None, [], [None]], pa.list_(pa.timestamp(unit)))
        assert values(tmp_path, moments) == [
            f'["{far[unit]}","1970-01-01T00:00:00"]', "{", "[]", "[null]",
        ]  # fmt: skip
    days = pa.StructArray.from_arrays([pa.array([10**7, 0], pa.int32()).cast(pa.date32())], ["d"])
    assert values(tmp_path, days) == ['{"d":"+29349-01-26"}', '{"d":"1970-01-01"}']


def test_a_key_that_a_map_repeats_keeps_all_its_values(tmp_path: Path) -> None:
    inner = pa.map_(pa.string(), pa.int64())
    column = pa.array([[("k", 1), ("k", 2), ('ü"', None)], None, [], [("a", 3)]], inner)
    assert payloads(tmp_path, pa.table({"v": column})) == [
        '{"v":{"k":1,"k":2,"ü\\"":null}}', "{}", '{"v":{}}', '{"v":{"a":3}}',
    ]  # fmt: skip
    nested = pa.array([[[("k", 1), ("k", 2)], []], []], pa.list_(inner))
    assert payloads(tmp_path, pa.table({"v": nested})) == [
        '{"v":[{"k":1,"k":2},{}]}', '{"v":[]}',
    ]  # fmt: skip
    numbers = pa.array([[(1, b"\xff"), (1, b"a")]], pa.map_(pa.int32(), pa.binary()))
    assert payloads(tmp_path, pa.table({"v": numbers})) == ['{"v":{"1":"/w==","1":"YQ=="}}']


def test_nested_values_are_what_pyarrow_says_also_in_parts_of_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(30)
    leaf = pa.struct(
        [("n", pa.int64()), ("t", pa.string()), ("l", pa.list_(pa.float64())), ("b", pa.bool_())]
    )
    kinds = (
        *(pa.list_(leaf), pa.large_list(pa.string()), pa.list_(pa.int32(), 2), leaf),
        *(pa.list_view(pa.string()), pa.map_(pa.string(), pa.list_(pa.int64()))),
    )

    def value(kind: pa.DataType) -> Any:
        if draw.random() < 0.2:
            return None
        if pa.types.is_struct(kind):
            return {field.name: value(field.type) for field in kind}
        if pa.types.is_map(kind):
            return {key: value(kind.item_type) for key in ("a", "ü") if draw.random() < 0.5}
        if pa.types.is_fixed_size_list(kind):
            return [value(kind.value_type) for _ in range(2)]
        if pa.types.is_nested(kind):
            return [value(kind.value_type) for _ in range(draw.randint(0, 3))]
        if pa.types.is_boolean(kind):
            return draw.random() < 0.5
        if pa.types.is_string(kind):
            return draw.choice(["", 'a"b\\', "Ü", "\n"])
        return draw.randint(-9, 9) / (1 if pa.types.is_integer(kind) else 4)

    monkeypatch.setattr("rivermark.lake.json_columns.MOST_BYTES", 200)
    for kind in kinds:
        rows = [value(kind) for _ in range(60)]
        column = pa.array(rows, kind)
        read = [json.loads(text) for text in payloads(tmp_path, pa.table({"v": column}))]
        assert [row.get("v") for row in read] == column.to_pylist(maps_as_pydicts="strict")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.timestamp("ns", "America/New_York"), '"2024-03-01T10:00:00.186000Z"'),
        (pa.duration("ms"), '"1709287200186000999 ms"'),
        (pa.decimal128(20, 2), '"17092872001860009.99"'),
        (pa.int64(), "1709287200186000999"),
    ],
)
def test_nested_values_have_all_their_digits(tmp_path: Path, kind: pa.DataType, text: str) -> None:
    number = 1_709_287_200_186_000_999
    inner = (
        pa.array([Decimal(number).scaleb(-2)], kind)
        if pa.types.is_decimal(kind)
        else pa.array([number], pa.int64()).cast(kind)
    )
    column = pa.ListArray.from_arrays([0, 1], inner)
    assert values(tmp_path, column, version="2.6") == [f"[{text}]"]


def test_a_name_that_a_struct_repeats_keeps_both_values(tmp_path: Path) -> None:
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    batch = pa.record_batch({"v": twice})
    assert typed_records(batch, None).payloads.to_pylist() == ['{"v":{"a":1,"a":2}}']


def test_a_span_of_time_keeps_its_unit_and_is_no_number(tmp_path: Path) -> None:
    for unit in ("s", "ms", "us", "ns"):
        column = pa.array([5, None], pa.int64()).cast(pa.duration(unit))
        assert values(tmp_path, column) == [f'"5 {unit}"', "{"]


def test_a_page_that_is_not_what_its_checksum_says_makes_the_file_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"v": [float(n) for n in range(50)]})
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    assert len(next(parquet_records(str(path), None))) == 50

    content = bytearray(path.read_bytes())
    content[content.index(struct.pack("<d", 7.0)) + 6] ^= 4  # 6.0
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        [*parquet_records(str(path), None)]
