"""Avro records as JSON: each value as it is, and bytes as text like those of Parquet (N029)."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from rivermark.ingest.parse.cutter import MALFORMED, UNDECODABLE, Cutter, Spelled
from rivermark.ingest.source.avro_values import RepeatedKey
from rivermark.ingest.source.files.avro import avro_records
from rivermark.ingest.source.files.corrupt_files import decoding_fault
from rivermark.ingest.source.files.pieces import AvroPiece

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
FIXED = {"type": "fixed", "name": "four", "size": 4}


def payloads(
    tmp_path: Path,
    fields: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    wanted: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """What is read of records with fields of these types."""
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    path = tmp_path / "a.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "R", "fields": declared}, records)
    return [
        json.loads(text)
        for part in avro_records(str(path), wanted)
        for text in part.payloads.to_pylist()
    ]


def test_n029_bytes_are_text_where_they_are_utf8(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"Note": "bytes", "code": FIXED, "geom": ["null", "bytes"]}
    records: list[dict[str, Any]] = [
        {"Note": "Ü".encode(), "code": b"abcd", "geom": b"ok"},
        {"Note": b"\xe9", "code": b"\0\0\0\x01", "geom": b"\xff\x00"},
        {"Note": b"", "code": b"abcd", "geom": None},
    ]

    assert payloads(tmp_path, fields, records, wanted={"note", "code"}) == [
        {"Note": "Ü", "code": "abcd", "geom": "ok"},
        {"Note": "\ufffd", "code": "\0\0\0\x01", "geom": "/wA="},
        {"Note": "", "code": "abcd", "geom": None},
    ]


def test_values_of_every_type_are_as_they_are(tmp_path: Path) -> None:
    fields = {
        "long": "long",
        "nan": "double",
        "far": "float",
        "amount": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 18},
        "at": MILLIS,
        "day": {"type": "int", "logicalType": "date"},
        "id": {"type": "string", "logicalType": "uuid"},
        "tags": {"type": "map", "values": "int"},
        "state": {"type": "enum", "name": "E", "symbols": ["ON"]},
    }
    record = {
        "long": 2**63 - 1,
        "nan": float("nan"),
        "far": float("-inf"),
        "amount": Decimal("12345678901234567.89"),
        "at": datetime(2024, 3, 1, 10, 0, 0, 186_000, UTC),
        "day": date(2024, 3, 1),
        "id": UUID(int=5),
        "tags": {"a": 1},
        "state": "ON",
    }

    (row,) = payloads(tmp_path, fields, [record])
    assert Decimal(row.pop("amount")) == record["amount"]
    assert row == {
        "long": 2**63 - 1,
        "nan": "NaN",
        "far": "-Infinity",
        "at": "2024-03-01T10:00:00.186000Z",
        "day": "2024-03-01",
        "id": str(UUID(int=5)),
        "tags": {"a": 1},
        "state": "ON",
    }


def test_records_come_in_order_in_parts_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[dict[str, Any]] = [{"n": n} for n in range(10)]
    for rows, size in ((3, 1_000), (100, 20), (10, 1_000)):
        monkeypatch.setattr("rivermark.ingest.source.files.avro.ROWS", rows)
        monkeypatch.setattr("rivermark.ingest.source.files.avro.MOST_BYTES", size)
        assert payloads(tmp_path, {"n": "int"}, records) == records
    assert payloads(tmp_path, {"n": "int"}, []) == []


def of_type(tmp_path: Path, kind: Any, *values: Any) -> list[Any]:
    """What values of a type become, in a file with a good row behind each."""
    records: list[dict[str, Any]] = [
        record for value in values for record in ({"v": value, "n": 1}, {"v": values[0], "n": 2})
    ]
    rows = payloads(tmp_path, {"v": kind, "n": "int"}, records)
    assert [row["n"] for row in rows] == [1, 2] * len(values)
    return [row["v"] for row in rows[::2]]


@pytest.mark.parametrize("name", ["timestamp", "local-timestamp"])
@pytest.mark.parametrize(
    ("unit", "second"), [("millis", 10**3), ("micros", 10**6), ("nanos", 10**9)]
)
def test_a_wild_time_is_unreadable_in_its_row_alone(
    tmp_path: Path, name: str, unit: str, second: int
) -> None:
    kind = {"type": "long", "logicalType": f"{name}-{unit}"}
    wild = [2**63 - 1, -(2**63)] if unit != "nanos" else []
    zone = "Z" if name == "timestamp" else ""
    floored = "1969-12-31T23:59:59.999" + ("" if unit == "millis" else "999")
    far = {
        "millis": ["+292278994-08-17T07:12:55.807000", "-292275055-05-16T16:47:04.192000"],
        "micros": ["+294247-01-10T04:00:54.775807", "-290308-12-21T19:59:05.224192"],
        "nanos": [],
    }

    assert of_type(tmp_path, kind, 0, 86_400 * second, -1, *wild) == [
        f"1970-01-01T00:00:00{zone}",
        f"1970-01-02T00:00:00{zone}",
        f"{floored.ljust(26, '0')}{zone}",
        *(f"{text}{zone}" for text in far[unit]),
    ]


def test_wild_values_of_the_other_logical_types_cost_their_row_alone(tmp_path: Path) -> None:
    day = {"type": "int", "logicalType": "date"}
    assert of_type(tmp_path, day, 0, 2_932_896, 2_932_897, -719_163, 2**31 - 1) == [
        "1970-01-01", "9999-12-31", "+10000-01-01", "0000-12-31", "+5881580-07-11",
    ]  # fmt: skip
    millis = {"type": "int", "logicalType": "time-millis"}
    assert of_type(tmp_path, millis, 1, 86_400_000, -1) == [
        "00:00:00.001000", "86400000 ms", "-1 ms",
    ]  # fmt: skip
    micros = {"type": "long", "logicalType": "time-micros"}
    assert of_type(tmp_path, micros, 86_399_999_999, 2**40) == [
        "23:59:59.999999", "1099511627776 us",
    ]  # fmt: skip
    own = UUID(int=5)
    text = {"type": "string", "logicalType": "uuid"}
    assert of_type(tmp_path, text, str(own), "none") == [str(own), "none"]
    fixed = {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}
    assert of_type(tmp_path, fixed, own.bytes) == [str(own)]


@pytest.mark.parametrize(
    "base", [{"type": "bytes"}, {"type": "fixed", "name": "Amount", "size": 4}]
)
def test_a_decimal_of_more_digits_than_its_schema_says_is_not_rounded(
    tmp_path: Path, base: dict[str, Any]
) -> None:
    kind = base | {"logicalType": "decimal", "precision": 5, "scale": 2}
    numbers = [1, -1, 12_345, 123_456_789, -(2**31)]

    texts = of_type(tmp_path, kind, *(n.to_bytes(4, "big", signed=True) for n in numbers))
    assert [*map(Decimal, texts)] == [Decimal(n).scaleb(-2) for n in numbers]
    if base["type"] == "bytes":
        assert of_type(tmp_path, kind, b"\x01", b"", b"\x7f" * 9_000) == [
            "0.01", "0 bytes", "9000 bytes",
        ]  # fmt: skip


def test_a_float_has_its_own_digits_and_not_those_of_a_double(tmp_path: Path) -> None:
    singles = [0.0025, 0.1, -3.4028235e38, 1e-45, 16_777_216.0, float("inf")]
    found = [0.0025, 0.1, -3.4028235e38, 1e-45, 16_777_216.0, "Infinity"]
    assert of_type(tmp_path, "float", *singles) == found
    assert of_type(tmp_path, ["null", {"type": "float"}], 0.0025, None) == [0.0025, None]
    assert of_type(tmp_path, {"type": "array", "items": "float"}, [0.1]) == [[0.1]]
    assert of_type(tmp_path, {"type": "map", "values": "float"}, {"a": 0.1}) == [{"a": 0.1}]


def test_a_key_that_a_map_repeats_keeps_all_its_values(tmp_path: Path) -> None:
    kind = {"type": "map", "values": ["null", {"type": "map", "values": "long"}]}
    inner = {RepeatedKey("k"): 1, RepeatedKey("k"): 2}
    path = tmp_path / "a.avro"
    schema = {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}
    with path.open("wb") as file:
        fastavro.writer(file, schema, [{"v": {"a": inner, "b": None}}, {"v": {"a": {"k": 1}}}])

    (texts,) = [part.payloads.to_pylist() for part in avro_records(str(path), None)]
    assert texts == ['{"v":{"a":{"k":1,"k":2},"b":null}}', '{"v":{"a":{"k":1}}}']


def test_a_text_that_is_no_utf8_costs_its_row_alone(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"note": "string", "more": {"type": "array", "items": "string"}}
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }
    sink = io.BytesIO()
    records = [
        {"note": "XX", "more": ["ü"]},
        {"note": "ü", "more": ["YY"]},
        {"note": "", "more": []},
    ]
    fastavro.writer(sink, schema, records)
    path = tmp_path / "a.avro"
    path.write_bytes(sink.getvalue().replace(b"XX", b"X\xe9").replace(b"YY", b"Y\xff"))

    (texts,) = [part.payloads.to_pylist() for part in avro_records(str(path), {"note"})]
    assert [json.loads(text) for text in texts] == [
        {"note": "X\udce9", "more": ["ü"]}, {"note": "ü", "more": ["Y\udcff"]}, records[2],
    ]  # fmt: skip
    # With half a character no row is admitted, unless it stands where nothing is read.
    columns = [pa.array(values, pa.string()) for values in (texts, ["avro"] * 3, [None] * 3)]
    cut = Cutter([Spelled("note", ("note",), ("",))], ",").cut(*columns)
    assert cut.field(MALFORMED).to_pylist() == [UNDECODABLE, None, None]


def test_other_readers_of_avro_in_the_process_keep_their_values(tmp_path: Path) -> None:
    assert payloads(tmp_path, {"at": MILLIS}, [{"at": 0}]) == [{"at": "1970-01-01T00:00:00Z"}]
    with (tmp_path / "a.avro").open("rb") as file:
        assert [*fastavro.reader(file)] == [{"at": datetime(1970, 1, 1, tzinfo=UTC)}]


def test_records_within_records_cost_their_file_and_not_the_process(tmp_path: Path) -> None:
    fields = [{"name": "next", "type": ["null", "Node"]}, {"name": "at", "type": MILLIS}]
    node = {"type": "record", "name": "Node", "fields": fields}
    sink = io.BytesIO()
    fastavro.writer(sink, node, [{"next": {"next": None, "at": 0}, "at": 0}])
    path = tmp_path / "a.avro"
    path.write_bytes(sink.getvalue())
    (texts,) = [part.payloads.to_pylist() for part in avro_records(str(path), None)]
    at = "1970-01-01T00:00:00Z"
    assert [json.loads(text) for text in texts] == [{"next": {"next": None, "at": at}, "at": at}]

    depth, mark = 100_000, sink.getvalue()[-16:]
    record = b"\2" * depth + b"\0" * (depth + 2)
    block = io.BytesIO()
    for number in (1, len(record)):
        fastavro.schemaless_writer(block, "long", number)
    header = sink.getvalue().partition(mark)[0]
    path.write_bytes(header + mark + block.getvalue() + record + mark)
    piece = AvroPiece(splits=("a",), weight=1, path=str(path), wanted=None)
    assert "RecursionError" in str(decoding_fault([piece]))
