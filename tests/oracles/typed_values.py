"""Typed lines, held to what Python's own readers make of the cutter's texts."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from pyspark.sql.types import FloatType

from rivermark import Contract
from rivermark.ingest.parse.cutter import MALFORMED
from rivermark.ingest.parse.field_column import field_columns
from rivermark.ingest.parse.typed_read import Typed, TypedRead
from rivermark.model.field_readers import BooleanReader, TextReader
from rivermark.model.number_readers import DecimalReader, IntegerReader, NumberReader
from rivermark.model.reader import Reader, SqlReader
from rivermark.model.time_readers import MillisReader, WallReader

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def typed_read(contract: Contract, delimiter: str = ",") -> TypedRead:
    """The reader of the plain lines of a contract."""
    return TypedRead(field_columns(contract), delimiter, contract.max_row_bytes)


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


def value_in(read: Reader, text: str) -> Any:
    """The value of a plain text, by Python's own readers."""
    match read:
        case TextReader():
            return text
        case IntegerReader():
            number = Decimal(text)
            assert number == number.to_integral_value()
            return int(number)
        case DecimalReader():
            unit = Decimal(1).scaleb(-read.type.scale)
            return Decimal(text.replace(",", ".")).quantize(unit, ROUND_HALF_UP, Context(60))
        case NumberReader():
            double = float(text)
            return float(np.float32(double)) if isinstance(read.type, FloatType) else double
        case BooleanReader():
            return text.strip(" ").lower() in ("true", "t", "yes", "y", "1")
        case MillisReader():
            return EPOCH + int(Decimal(text)) * timedelta(milliseconds=1)
        case SqlReader():
            return {"card": 1, "cash": 2}[text.strip(" ").lower()]
    in_utc = re.sub(" ?(?:UTC|[zZ])$", "+00:00", text.strip(" "))
    moment = datetime.fromisoformat(re.sub(r"(?<=\.\d{6})\d+", "", in_utc))
    zone = ZoneInfo(read.zone) if isinstance(read, WallReader) else UTC
    # In UTC, because in a gap no time of a zone equals one of another.
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)


def assert_exact(contract: Contract, typed: Typed, cells: pa.StructArray) -> None:
    """Every typed value is what Python reads in the text that the cutter finds."""
    good = pa.array(typed.good)
    assert not cells.field(MALFORMED).filter(good).drop_null()
    for field in contract.fields:
        texts = cells.field(field.name).filter(good).to_pylist()
        values = typed.columns[field.name].to_pylist()
        for text, value in zip(texts, values, strict=True):
            wanted = None if text is None else value_in(field.reader, text)
            assert value == wanted, (field.name, text)
