"""Records as payloads: those that are no text become JSON, which is parsed as landed JSON is."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from rivermark.model.source import Records

TO_JSON: Final = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of `to_json`, which otherwise cuts times to milliseconds."""


def driver_records(payloads: Sequence[Sequence[str]]) -> Records:
    """Records that the driver holds: the payloads of each split, numbered from 1."""
    return Records(
        pa.table(
            {
                "_split": pa.array(
                    [code for code, each in enumerate(payloads) for _ in each], pa.int32()
                ),
                "_row": pa.array(
                    [n for each in payloads for n in range(1, len(each) + 1)], pa.int64()
                ),
                "payload": pa.array([text for each in payloads for text in each], pa.string()),
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


def json_payload(record: Mapping[str, Any]) -> str:
    """A record as one JSON object: times as ISO-8601 text, bytes as base64."""
    return json_value(record)


def json_value(value: Any) -> str:
    """A value as JSON, in the manner of `json_payload`."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    match value:
        case Row():
            return _plain(value.asDict())
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if not math.isfinite(value):
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case _:
            return value
