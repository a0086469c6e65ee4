"""Declarations that the tests of this folder vary."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark.model.contract import Contract, Field
from rivermark.model.stream import Ingest, Stream
from rivermark.model.table import Daily, Table
from rivermark.sources import FileSource

MINUTE = timedelta(minutes=1)
SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])


def ingest(name: str = "test/rides", **more: Any) -> Ingest:
    """An ingest of rides with a lateness of one minute."""
    declared: dict[str, Any] = {
        "name": name,
        "source": FileSource(folder="rides"),
        "contract": Contract(
            fields=(
                Field("id", LongType(), required=True),
                Field("at", TimestampType(), required=True),
            ),
            event_time="at",
            keys=("id",),
        ),
        "lateness": MINUTE,
        "description": "Rides.",
        "group": "test",
    }
    return Ingest(**(declared | more))


def table(name: str = "test/hours", **more: Any) -> Table:
    """A table by days of its event time."""
    declared: dict[str, Any] = {
        "name": name,
        "schema": SCHEMA,
        "description": "Hours.",
        "event_time": "at",
        "days": Daily("at", date(2024, 1, 1)),
    }
    return Table(**(declared | more))


def stream(name: str = "test/hours", *reads: Ingest | Stream | Table, **more: Any) -> Stream:
    """A stream that gives its rows on."""

    def same(rows: DataFrame, *others: DataFrame) -> DataFrame:
        return rows

    declared: dict[str, Any] = {
        "name": name,
        "reads": reads or (ingest(),),
        "build": same,
        "writes": table(name),
        "description": "Hours.",
        "group": "test",
    }
    return Stream(**(declared | more))
