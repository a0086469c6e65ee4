"""What every engine is asked to do: names, inputs, output columns. Imports no engine.

All times are milliseconds since 1970 in the outputs; each engine writes exactly these columns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MINUTE: Final = 60_000
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
BEGIN: Final = 1_704_067_200_000
"""When the events begin: 2024-01-01T00:00:00Z, in milliseconds."""
LATENESS_SECONDS: Final = 60
"""No event arrives later than this after its time, so nothing is late and nothing is dropped: but
for the late lines of the feed (feed.py)."""


@dataclass(frozen=True)
class Workload:
    """A question to be answered; `time` is the output column that tells real rows from the last."""

    title: str
    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    time: str
    folder: str = "parquet"

    @property
    def names(self) -> tuple[str, ...]:
        """The output columns."""
        return tuple(name for name, _ in self.columns)


AVERAGES: Final = (
    ("window_start_ms", "BIGINT"),
    ("window_end_ms", "BIGINT"),
    ("sensor_id", "BIGINT"),
    ("avg_temp", "DOUBLE"),
    ("cnt", "BIGINT"),
)
RIDES: Final = (
    ("ride_id", "BIGINT"),
    ("is_start", "BOOLEAN"),
    ("event_ms", "BIGINT"),
    ("start_lon", "DOUBLE"),
    ("start_lat", "DOUBLE"),
    ("end_lon", "DOUBLE"),
    ("end_lat", "DOUBLE"),
    ("passenger_count", "INT"),
    ("taxi_id", "BIGINT"),
    ("driver_id", "BIGINT"),
)
FARES: Final = (
    ("ride_id", "BIGINT"),
    ("taxi_id", "BIGINT"),
    ("driver_id", "BIGINT"),
    ("event_ms", "BIGINT"),
    ("payment_type", "STRING"),
    ("tip", "DOUBLE"),
    ("tolls", "DOUBLE"),
    ("total_fare", "DOUBLE"),
)
READINGS: Final = (("sensor_id", "BIGINT"), ("event_ms", "BIGINT"), ("temperature", "DOUBLE"))
WIDE_FARES: Final = (("driver_id", "BIGINT"), ("event_ms", "BIGINT"), ("tip", "DOUBLE"))
SCHEMAS: Final = {
    "rides": RIDES,
    "fares": FARES,
    "readings": READINGS,
    "wide_readings": READINGS,
    "wide_fares": WIDE_FARES,
    "feed": FARES,
}
"""Columns of the inputs. The Parquet files also hold `event_time`, the same as a timestamp.

The wide ones have 200,000 keys, all of them live (keyed_events); JSON lines have the time as text
alone."""
JUMP: Final = 15.0
"""Degrees by which a reading must differ from its sensor's last one."""

WINNERS: Final = (("window_end_ms", "BIGINT"), ("driver_id", "BIGINT"), ("sum_tips", "DOUBLE"))

WORKLOADS: Final = {
    "door": Workload(
        "W0 JSON lines to typed rows", ("rides",), RIDES, time="event_ms", folder="json"
    ),
    "cleanse": Workload(
        "W1 rides inside the city",
        ("rides",),
        tuple(c for c in RIDES if c[0] not in ("end_lon", "end_lat", "taxi_id")),
        time="event_ms",
    ),
    "tips_max": Workload(
        "W2 most tips of each hour",
        ("fares",),
        WINNERS,
        time="window_end_ms",
    ),
    "tumbling": Workload("W3 average of 5 minutes", ("readings",), AVERAGES, time="window_end_ms"),
    "sliding": Workload(
        "W4 average of 5 minutes, each minute", ("readings",), AVERAGES, time="window_end_ms"
    ),
    "join": Workload(
        "W5 rides with their fares",
        ("rides", "fares"),
        (
            ("ride_id", "BIGINT"),
            ("driver_id", "BIGINT"),
            ("event_ms", "BIGINT"),
            ("start_lon", "DOUBLE"),
            ("start_lat", "DOUBLE"),
            ("passenger_count", "INT"),
            ("payment_type", "STRING"),
            ("tip", "DOUBLE"),
            ("tolls", "DOUBLE"),
            ("total_fare", "DOUBLE"),
        ),
        time="event_ms",
    ),
    "long_rides": Workload(
        "W6 rides of more than two hours",
        ("rides",),
        (("ride_id", "BIGINT"), ("driver_id", "BIGINT"), ("start_ms", "BIGINT")),
        time="start_ms",
    ),
    "jumps": Workload(
        "W7 temperature jumps",
        ("wide_readings",),
        (
            ("sensor_id", "BIGINT"),
            ("event_ms", "BIGINT"),
            ("temperature", "DOUBLE"),
            ("before", "DOUBLE"),
        ),
        time="event_ms",
    ),
    "hourly_tips": Workload(
        "W8 tips of each driver and hour",
        ("wide_fares",),
        (("driver_id", "BIGINT"), ("window_end_ms", "BIGINT"), ("tips", "DOUBLE")),
        time="window_end_ms",
    ),
    "winners": Workload(
        "W9 JSON lines to hourly winners",
        ("feed",),
        WINNERS,
        time="window_end_ms",
        folder="json",
    ),
}
ADMITTING: Final = tuple(name for name, each in WORKLOADS.items() if each.folder == "json")
"""What begins with JSON lines."""
JSON_FILES: Final = {"rides": "rides", "feed": "feed/parts"}
"""Where the lines of an input lie, below the folder of JSON lines."""
PROCESS: Final = ("long_rides", "jumps", "hourly_tips")
"""What is asked of process functions: keyed state and timers, written by hand."""
USUAL: Final = tuple(name for name in WORKLOADS if name not in (*ADMITTING, *PROCESS[1:]))
"""What is asked of the native operators."""


def ddl(columns: Iterable[tuple[str, str]], *, event_time: bool = False) -> str:
    """The columns as DDL, and behind them the event time as a timestamp where the table has one."""
    fields = [f"{name} {kind}" for name, kind in columns]
    return ", ".join([*fields, "event_time TIMESTAMP"] if event_time else fields)


WEST, EAST, SOUTH, NORTH = -74.05, -73.7, 40.5, 41.0


def in_city(lon: str, lat: str) -> str:
    """SQL for a point inside the box around New York, borders included."""
    return f"({lon} BETWEEN {WEST} AND {EAST} AND {lat} BETWEEN {SOUTH} AND {NORTH})"


def arguments() -> tuple[str, str, str]:
    """A job's command line: WORKLOAD DATA_FOLDER OUT_FOLDER."""
    workload, data, out = sys.argv[1:4]
    if strange := [name for name in workload.split("+") if name not in WORKLOADS]:
        raise SystemExit(f"no workload is named {strange[0]!r}; there are: {', '.join(WORKLOADS)}")
    return workload, data, out
