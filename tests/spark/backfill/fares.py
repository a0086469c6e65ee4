"""Fares of a few days as they stream in, and what tips per driver and hour must be of them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.ingest import FIRST_DAY
from assets.taxi.tips import DRIVER_TIPS, tips_per_driver
from rivermark.lake.schema import create_table
from rivermark.model.stream import table_of
from rivermark.settings import Settings

DAY_ONE: Final = FIRST_DAY + timedelta(days=1)
DAY_TWO: Final = FIRST_DAY + timedelta(days=2)
MONEY: Final = pa.decimal128(12, 2)
FARES_A_DAY: Final = 48
Fare = tuple[int, int, datetime, Decimal]


def fares_of(day: int) -> list[Fare]:
    """(ride, driver, moment, tip) of the n-th day after the first: one each half hour."""
    began = datetime.combine(FIRST_DAY + timedelta(days=day), datetime.min.time(), UTC)
    numbers = range(day * 1000, day * 1000 + FARES_A_DAY)
    return [
        (n, n * 7 % 5, began + (n % 1000) * timedelta(minutes=30), Decimal(n % 7) + Decimal("0.25"))
        for n in numbers
    ]


def stream_in(settings: Settings, *fares: Fare) -> None:
    """One commit of fares to the table that the stream reads."""
    table = table_of(CLEAN_FARES)
    create_table(settings.lake(), table)
    drivers = pa.array([driver for _, driver, _, _ in fares])
    tips = pa.array([tip for _, _, _, tip in fares], MONEY)
    columns = {
        "ride_id": pa.array([ride for ride, _, _, _ in fares]),
        "taxi_id": drivers,
        "driver_id": drivers,
        "event_time": pa.array([at for _, _, at, _ in fares], pa.timestamp("us", "UTC")),
        "payment_type": pa.array(["CARD"] * len(fares)),
        "tip": tips,
        "tolls": pa.array([Decimal(0)] * len(fares), MONEY),
        "total_fare": tips,
    }
    write_deltalake(settings.lake().path(table), pa.table(columns), mode="append")


def oracle(*fares: Fare, times: int = 1) -> list[tuple[int, datetime, Decimal, int]]:
    """Driver, hour, tips and number of fares, in plain Python."""
    sums: dict[tuple[int, datetime], list[Decimal]] = defaultdict(list)
    for _, driver, at, tip in fares:
        sums[driver, at.replace(minute=0)].append(tip * times)
    return sorted((d, hour, sum(tips, Decimal(0)), len(tips)) for (d, hour), tips in sums.items())


def published(settings: Settings, version: int | None = None) -> list[tuple[Any, ...]]:
    """The same columns as the stream's table has them."""
    return rows_at(settings.lake().path(table_of(DRIVER_TIPS)), version)


def rows_at(path: str, version: int | None = None) -> list[tuple[Any, ...]]:
    """The same columns of a table at a path."""
    found = DeltaTable(path, version=version).to_pyarrow_table()
    names = ("driver_id", "window_start", "tips", "fares")
    return sorted(zip(*(found[name].to_pylist() for name in names), strict=True))


def counted(clean_fares: DataFrame, times: int = 1) -> DataFrame:
    """The rule as it should be, where each tip counts so many times."""
    return tips_per_driver(clean_fares.withColumn("tip", F.col("tip") * times))


def doubled(clean_fares: DataFrame) -> DataFrame:
    """The wrong rule that shipped."""
    return counted(clean_fares, times=2)
