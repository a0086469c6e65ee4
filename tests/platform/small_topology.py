"""A small deployment: two groups, tables with and without days, days of two zones."""

from datetime import date, timedelta
from typing import Any

from pyspark.sql.types import LongType, StringType, TimestampType

from rivermark import Contract, Daily, Field, Ingest, Output, Stream, Table, Topology
from rivermark.sources import FileSource

RIDES = Ingest(
    name="taxi/rides",
    source=FileSource(folder="taxi/rides"),
    contract=Contract(
        fields=(
            Field("ride_id", LongType(), required=True, description="Identifies the ride."),
            Field("at", TimestampType(), required=True),
            Field("driver", StringType()),
        ),
        event_time="at",
        keys=("ride_id",),
    ),
    lateness=timedelta(minutes=1),
    description="Every ride that was finished.",
    group="taxi",
    personal=("driver",),
    owners=("team:taxi",),
)

COUNTS = "window_start timestamp, window_end timestamp, rides long"


def unchanged(*frames: Any) -> Any:
    return frames[0]


def counts(name: str, reads: Ingest | Stream, zone: str, start: date) -> Stream:
    """A stream of rides an hour, its table by days of a zone."""
    table = Table(
        name=name,
        schema=COUNTS,
        description=f"Rides an hour, by days of {zone}.",
        event_time="window_end",
        keys=("window_end",),
        days=Daily(column="window_start", start=start, zone=zone),
    )
    return Stream(reads=(reads,), build=unchanged, writes=table, group="taxi")


HOURLY = counts("taxi/hourly", RIDES, "UTC", date(2026, 3, 1))
DAILY = counts("taxi/daily", HOURLY, "UTC", date(2026, 3, 2))
LOCAL = counts("taxi/local", HOURLY, "America/New_York", date(2026, 3, 1))
ALERTS = Stream(
    name="watch/alerts",
    reads=(HOURLY,),
    build=unchanged,
    writes=(
        Output(Table(name="watch/alerts", schema=COUNTS, description="Busy hours.")),
        Output(Table(name="watch/quiet", schema=COUNTS, description="Quiet hours.")),
    ),
    description="Hours that somebody should know of.",
    group="watch",
)

SMALL = Topology([RIDES, HOURLY, DAILY, LOCAL, ALERTS])
