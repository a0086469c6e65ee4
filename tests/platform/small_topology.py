"""A small deployment: two groups, tables with and without days, days of two zones."""

from datetime import date, timedelta
from typing import Any

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Contract, Daily, Field, FileSource, Ingest, Output, Stream, Table, Topology

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

COUNTS = StructType(
    [
        StructField("window_start", TimestampType()),
        StructField("window_end", TimestampType()),
        StructField("rides", LongType()),
    ]
)


def counts(name: str, zone: str, start: date) -> Table:
    return Table(
        name=name,
        schema=COUNTS,
        description=f"Rides an hour, by days of {zone}.",
        event_time="window_end",
        keys=("window_end",),
        days=Daily(column="window_start", start=start, zone=zone),
    )


def unchanged(*frames: Any) -> Any:
    return frames[0]


HOURLY = Stream(
    name="taxi/hourly",
    reads=(RIDES,),
    build=unchanged,
    writes=counts("taxi/hourly", "UTC", date(2026, 3, 1)),
    description="Rides an hour.",
    group="taxi",
)
DAILY = Stream(
    name="taxi/daily",
    reads=(HOURLY,),
    build=unchanged,
    writes=counts("taxi/daily", "UTC", date(2026, 3, 2)),
    description="Rides a day.",
    group="taxi",
)
LOCAL = Stream(
    name="taxi/local",
    reads=(HOURLY,),
    build=unchanged,
    writes=counts("taxi/local", "America/New_York", date(2026, 3, 1)),
    description="Rides a local day.",
    group="taxi",
)
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
