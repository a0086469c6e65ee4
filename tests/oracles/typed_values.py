"""What the lane types, held to what Python's own readers make of the cutter's texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DecimalType

from rivermark import Contract, readers
from rivermark.ingest.parse.cutter import MALFORMED
from rivermark.ingest.parse.lane.lane import Lane, Typed
from rivermark.ingest.parse.lane.readers import lane_of, zones_of
from rivermark.ingest.parse.lane.zones import Change, Zone
from rivermark.ingest.parse.parser import spelled


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


ZONES = {
    "America/New_York": Zone(
        at("2024-01-01T00:00Z"),
        at("2025-01-01T00:00Z"),
        -5 * 3600,
        [
            Change(at("2024-03-10T07:00Z"), -5 * 3600, -4 * 3600),
            Change(at("2024-11-03T06:00Z"), -4 * 3600, -5 * 3600),
        ],
    ),
    "Europe/Berlin": Zone(
        at("2024-01-01T00:00Z"),
        at("2025-01-01T00:00Z"),
        3600,
        [
            Change(at("2024-03-31T01:00Z"), 3600, 7200),
            Change(at("2024-10-27T01:00Z"), 7200, 3600),
        ],
    ),
}


def lane(contract: Contract, delimiter: str = ",") -> Lane:
    assert zones_of(contract) <= ZONES.keys()
    return lane_of(contract, [spelled(f) for f in contract.fields], delimiter, ZONES)


def arrays(
    lines: Sequence[str], kind: str = "json", columns: Sequence[str] | None = None
) -> tuple[pa.Array, pa.Array, pa.Array]:
    names = json.dumps(columns) if columns else None
    count = len(lines)
    return (
        pa.array(lines, pa.string()),
        pa.array([kind] * count, pa.string()),
        pa.array([names] * count, pa.string()),
    )


def value_in(read: readers.NamedReader, text: str) -> Any:
    """What a plain text means, by Python's own readers."""
    match read.kind:
        case "text":
            return text
        case "integer":
            number = Decimal(text)
            assert number == number.to_integral_value()
            return int(number)
        case "decimal":
            assert isinstance(read.type, DecimalType)
            unit = Decimal(1).scaleb(-read.type.scale)
            return Decimal(text.replace(",", ".")).quantize(unit, ROUND_HALF_UP, Context(60))
        case "number":
            return float(text)
        case "boolean":
            return text.lower() in ("true", "t", "yes", "y", "1")
        case "millis":
            return datetime.fromtimestamp(0, UTC) + int(Decimal(text)) * (
                datetime.fromtimestamp(0.001, UTC) - datetime.fromtimestamp(0, UTC)
            )
        case _:
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(read.zone))


def assert_exact(contract: Contract, typed: Typed, cells: pa.StructArray) -> None:
    """Every typed value is what Python reads in the text that the cutter finds."""
    assert not cells.field(MALFORMED).filter(pa.array(typed.good)).drop_null()
    for field in contract.fields:
        read = field.read or readers.reader_for(field.type)
        texts = cells.field(field.name).to_pylist()
        values = typed.columns[field.name].to_pylist()
        for text, value, good in zip(texts, values, typed.good, strict=True):
            if not good:
                continue
            if field.name in typed.texts or text is None:
                assert value == text, field.name
            else:
                assert isinstance(read, readers.NamedReader)
                wanted = value_in(read, text)
                if field.name == "single":
                    wanted = float(np.float32(wanted))
                assert value == wanted, (field.name, text)
