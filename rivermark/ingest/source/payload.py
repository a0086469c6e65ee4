"""Records as payloads: those that are no text become JSON, which is parsed as landed JSON is."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from rivermark.model.source import ColumnTexts, Piece, PlannedSplit, Records, placed


@dataclass(frozen=True)
class JsonRecords:
    """Rows as JSON objects, with the texts of their columns where those are known."""

    payloads: pa.StringArray
    texts: tuple[ColumnTexts, ...] = ()

    def __len__(self) -> int:
        return len(self.payloads)

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads and of the columns' texts."""
        return int(self.payloads.nbytes) + sum(each.nbytes for each in self.texts)


Payloads: TypeAlias = "Sequence[str] | pa.StringArray | JsonRecords"
"""The records of a split, in their order."""


def joined(parts: Sequence[JsonRecords]) -> JsonRecords:
    """Records one behind the other."""
    payloads = [part.payloads for part in parts]
    whole = pa.concat_arrays(payloads) if parts else pa.array([], pa.string())
    return JsonRecords(whole, placed([(len(part), part.texts) for part in parts]))


def numbered(split: str, payloads: Payloads, first: int) -> Records:
    """Records of one split that stand behind `first` others."""
    count = len(payloads)
    rows = pa.table(
        {
            "_split": pa.array(np.zeros(count, np.int32)),
            "_row": pa.array(np.arange(first + 1, first + count + 1, dtype=np.int64)),
            "payload": _texts(payloads),
        }
    )
    return Records((split,), rows, payloads.texts if isinstance(payloads, JsonRecords) else ())


@dataclass(frozen=True, kw_only=True)
class HeldPiece(Piece):
    """A split whose records the driver had to read itself; they travel with the piece."""

    payloads: Payloads = field(repr=False)

    def read(self) -> Iterator[Records]:
        """The records, all at once."""
        yield numbered(self.splits[0], self.payloads, 0)


def held(splits: Sequence[PlannedSplit], payloads: Sequence[Payloads]) -> list[Piece]:
    """The records of splits that the driver has read."""
    return [
        HeldPiece(splits=(split.name,), weight=_weight(own), payloads=own)
        for split, own in zip(splits, payloads, strict=True)
    ]


def _weight(payloads: Payloads) -> int:
    return payloads.nbytes if hasattr(payloads, "nbytes") else sum(map(len, payloads))


def _texts(payloads: Payloads) -> pa.StringArray:
    if isinstance(payloads, JsonRecords):
        return payloads.payloads
    return payloads if isinstance(payloads, pa.Array) else pa.array(payloads, pa.string())


def json_payload(record: Mapping[str, Any]) -> str:
    """A record as one JSON object: times as ISO-8601 text, bytes as base64, others as text."""
    return json_value(record)


def json_value(value: Any) -> str:
    """A value as JSON, in the manner of `json_payload`."""
    plain = _plain(value)
    text = json.dumps(plain, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half a character as its escape, with which no text of a field is read.
        return json.dumps(plain)
    return text


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    match value:
        case Row():
            return _plain(value.asDict())
        case Mapping():
            # A text is left as it is: keys that are there twice are texts of a kind of their own.
            keys = (key if isinstance(key, str) else str(key) for key in value)
            return dict(zip(keys, map(_plain, value.values()), strict=True))
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case None | bool() | int() | float() | str():
            return value
        case _:
            # Such as an address or a span of time: a column that may be wanted by nothing.
            return str(value)
