"""Records as payloads: those that are no text become JSON, which is parsed as landed JSON is."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from rivermark.model.source import ColumnTexts, Records

RECORDS: Final = "_split string, payload string, _mid long, _part int"
"""The columns of records on Spark."""


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
    return JsonRecords(whole, _placed(parts))


def _placed(parts: Sequence[Payloads]) -> tuple[ColumnTexts, ...]:
    """The texts of records that stand one behind the other."""
    placed: list[ColumnTexts] = []
    first = 0
    for part in parts:
        if isinstance(part, JsonRecords):
            placed += [replace(each, first=first + each.first) for each in part.texts]
        first += len(part)
    return tuple(placed)


def driver_records(payloads: Sequence[Payloads]) -> Records:
    """Records that the driver holds: the payloads of each split, numbered from 1."""
    counts = [len(each) for each in payloads]
    texts = [_texts(each) for each in payloads]
    rows = [np.arange(1, count + 1, dtype=np.int64) for count in counts]
    table = pa.table(
        {
            "_split": pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)),
            "_row": pa.array(np.concatenate([np.empty(0, np.int64), *rows])),
            "payload": pa.chunked_array(texts, pa.string()),
        }
    )
    return Records(table, texts=_placed(payloads))


def _texts(payloads: Payloads) -> pa.StringArray:
    if isinstance(payloads, JsonRecords):
        return payloads.payloads
    return payloads if isinstance(payloads, pa.Array) else pa.array(payloads, pa.string())


def spark_records(frame: DataFrame, split: Column, payload: Column) -> DataFrame:
    """Records on Spark: the payload, its split and its place."""
    return frame.select(
        split.alias("_split"),
        payload.alias("payload"),
        F.monotonically_increasing_id().alias("_mid"),
        F.spark_partition_id().alias("_part"),
    )


def arrow_records(split: str, payloads: pa.StringArray, part: int, first: int) -> pa.RecordBatch:
    """The same as a worker returns them: some payloads of a split, after `first` others."""
    count = len(payloads)
    return pa.record_batch(
        {
            "_split": pa.repeat(split, count),
            "payload": payloads,
            "_mid": pa.array(range(first, first + count), pa.int64()),
            "_part": pa.array([part] * count, pa.int32()),
        }
    )


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
