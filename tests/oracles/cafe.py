"""A cafe's declarations, right as they stand, for tests that get one thing of them wrong."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermark import Contract, Daily, Field, Ingest, Stream, Table
from rivermark.operators import TumblingWindow, per_window
from rivermark.sources import FileSource

QUARTER = timedelta(minutes=15)


def contract(**more: Any) -> Contract:
    declared: dict[str, Any] = {
        "fields": (
            Field("order_id", "long", required=True),
            Field("at", "timestamp", required=True),
            Field("region", "string", required=True),
            Field("total", "decimal(12,2)"),
        ),
        "event_time": "at",
        "keys": ("order_id",),
    }
    return Contract(**(declared | more))


def orders(**more: Any) -> Ingest:
    declared: dict[str, Any] = {
        "name": "cafe/orders",
        "source": FileSource(folder="cafe/orders"),
        "contract": contract(),
        "lateness": timedelta(minutes=5),
        "description": "Orders as the cafes send them.",
        "group": "cafe",
    }
    return Ingest(**(declared | more))


def sales_per_quarter(rows: DataFrame) -> DataFrame:
    sales = F.sum("total").cast("decimal(22,2)")
    return per_window(rows, TumblingWindow(QUARTER), "at", "region", sales=sales)


def sales_table(**more: Any) -> Table:
    declared: dict[str, Any] = {
        "name": "cafe/sales",
        "schema": "region string, window_start timestamp, window_end timestamp, "
        "sales decimal(22,2)",
        "description": "Sales a region and quarter of an hour.",
        "event_time": "window_end",
        "keys": ("region", "window_end"),
        "days": Daily("window_start", date(2026, 11, 1)),
    }
    return Table(**(declared | more))


def sales(**more: Any) -> Stream:
    declared: dict[str, Any] = {
        "reads": (orders(),),
        "build": sales_per_quarter,
        "writes": sales_table(),
        "group": "cafe",
    }
    return Stream(**(declared | more))
