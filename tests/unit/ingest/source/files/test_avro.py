"""Avro records as JSON: each value as it is, and bytes as text like those of Parquet (N029)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest

from rivermark.ingest.source.files.avro import avro_payloads

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
    return [json.loads(text) for part in avro_payloads(str(path), wanted) for text in part.tolist()]


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
        "at": "2024-03-01T10:00:00.186000+00:00",
        "day": "2024-03-01",
        "id": str(UUID(int=5)),
        "tags": {"a": 1},
        "state": "ON",
    }


def test_records_come_in_order_in_parts_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records: list[dict[str, Any]] = [{"n": n} for n in range(10)]
    for rows, characters in ((3, 1_000), (100, 20), (10, 1_000)):
        monkeypatch.setattr("rivermark.ingest.source.files.avro.ROWS", rows)
        monkeypatch.setattr("rivermark.ingest.source.files.avro.MOST_CHARACTERS", characters)
        assert payloads(tmp_path, {"n": "int"}, records) == records
    assert payloads(tmp_path, {"n": "int"}, []) == []
