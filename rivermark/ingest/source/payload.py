"""Records as payloads: those that are no text become JSON, which is parsed as landed JSON is."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from rivermark.model.source import Records

RECORDS: Final = "_split string, payload string, _mid long, _part int"
"""The columns of records on Spark."""


Payloads: TypeAlias = "Sequence[str] | pa.StringArray"
"""The records of a split, in their order."""


def driver_records(payloads: Sequence[Payloads]) -> Records:
    """Records that the driver holds: the payloads of each split, numbered from 1."""
    counts = [len(each) for each in payloads]
    texts = [
        each if isinstance(each, pa.Array) else pa.array(each, pa.string()) for each in payloads
    ]
    rows = [np.arange(1, count + 1, dtype=np.int64) for count in counts]
    return Records(
        pa.table(
            {
                "_split": pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts)),
                "_row": pa.array(np.concatenate([np.empty(0, np.int64), *rows])),
                "payload": pa.chunked_array(texts, pa.string()),
            }
        )
    )


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
