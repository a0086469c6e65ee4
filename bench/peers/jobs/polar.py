"""Polars: a lazy query over the files, streamed to Parquet.

python -m bench.peers.jobs.polar WORKLOAD DATA_FOLDER OUT_FOLDER
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl
from polars import col

from bench.peers.workloads import (
    EAST,
    HOUR,
    MINUTE,
    NORTH,
    SCHEMAS,
    SOUTH,
    WEST,
    WORKLOADS,
    arguments,
)

TYPES: Final = {
    "BIGINT": pl.Int64,
    "BOOLEAN": pl.Boolean,
    "DOUBLE": pl.Float64,
    "INT": pl.Int32,
    "STRING": pl.String,
}


def parquet(data: str, name: str) -> Any:
    """An input without its last rows, which only move watermarks."""
    key = "sensor_id" if name == "readings" else "ride_id"
    return pl.scan_parquet(f"{data}/parquet/{name}/*.parquet").filter(col(key) >= 0)


def json_rides(data: str) -> Any:
    """JSON lines, typed."""
    schema = {column: TYPES[kind] for column, kind in SCHEMAS["rides"] if column != "event_ms"}
    rides = pl.scan_ndjson(
        f"{data}/json/rides/*.json", schema={**schema, "event_time": pl.String}
    ).filter(col("ride_id") >= 0)
    at = col("event_time").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", time_unit="ms")
    return rides.with_columns(event_ms=at.cast(pl.Int64)).select(WORKLOADS["door"].names)


def cleanse(data: str) -> Any:
    """Rides inside the city."""
    inside = [
        col(f"{end}_lon").is_between(WEST, EAST) & col(f"{end}_lat").is_between(SOUTH, NORTH)
        for end in ("start", "end")
    ]
    return parquet(data, "rides").filter(*inside).select(WORKLOADS["cleanse"].names)


def tips_max(data: str) -> Any:
    """Most tips of each hour; of equals the lowest driver."""
    sums = (
        parquet(data, "fares")
        .group_by(window_end_ms=floor(HOUR) + HOUR, driver_id=col("driver_id"))
        .agg(sum_tips=col("tip").sum())
    )
    order = ["window_end_ms", "sum_tips", "driver_id"]
    ordered = sums.sort(order, descending=[False, True, False])
    best = ordered.group_by("window_end_ms", maintain_order=True).first()
    return best.select(WORKLOADS["tips_max"].names)


def averages(data: str, every: int) -> Any:
    """Averages of five minutes, from the sums of panes of `every`."""
    size = 5 * MINUTE
    panes = (
        parquet(data, "readings")
        .group_by(window_start_ms=floor(every), sensor_id=col("sensor_id"))
        .agg(total=col("temperature").sum(), cnt=pl.len().cast(pl.Int64))
    )
    if every != size:
        start = col("window_start_ms")
        moved = [panes.with_columns(start - i * every) for i in range(size // every)]
        panes = (
            pl.concat(moved)
            .group_by("window_start_ms", "sensor_id")
            .agg(col("total").sum(), col("cnt").sum())
        )
    return panes.with_columns(
        window_end_ms=col("window_start_ms") + size, avg_temp=col("total") / col("cnt")
    ).select(WORKLOADS["sliding"].names)


def join(data: str) -> Any:
    """Rides with their fares."""
    fares = parquet(data, "fares").select(
        "ride_id", "payment_type", "tip", "tolls", "total_fare", fare_ms="event_ms"
    )
    pairs = parquet(data, "rides").filter(col("is_start")).join(fares, on="ride_id")
    near = (col("fare_ms") - col("event_ms")).abs() <= 5 * MINUTE
    return pairs.filter(near).select(WORKLOADS["join"].names)


def long_rides(data: str) -> Any:
    """Rides without an END within two hours."""
    rides = parquet(data, "rides")
    ends = rides.filter(~col("is_start")).select("ride_id", end_ms="event_ms")
    lasts = col("end_ms") - col("event_ms")
    pairs = rides.filter(col("is_start")).join(ends, on="ride_id", how="left")
    long = pairs.filter(lasts.is_null() | (lasts > 2 * HOUR) | (lasts < 0))
    return long.select("ride_id", "driver_id", start_ms="event_ms")


def floor(size: int) -> Any:
    """The start of the window of an event."""
    return col("event_ms") - col("event_ms") % size


QUERIES: Final[dict[str, Callable[[str], Any]]] = {
    "door": json_rides,
    "cleanse": cleanse,
    "tips_max": tips_max,
    "tumbling": lambda data: averages(data, 5 * MINUTE),
    "sliding": lambda data: averages(data, MINUTE),
    "join": join,
    "long_rides": long_rides,
}


def main() -> None:
    """Run one workload."""
    name, data, out = arguments()
    Path(out).mkdir(parents=True)
    QUERIES[name](data).sink_parquet(f"{out}/part-0.parquet", compression="snappy")


if __name__ == "__main__":
    main()
