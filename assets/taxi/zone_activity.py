"""Where trips begin and end, per taxi zone and quarter of an hour, as they are replayed."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from assets.taxi.event_suites import ZONE_ACTIVITY_SUITE
from assets.taxi.ingest import FIRST_TRIP_DAY, GROUP, OWNERS, TRIP_EVENTS, TRIP_LATENESS
from assets.taxi.trip_events import TRIP_EVENT
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.first_of_each import first_of_each
from rivermark.operators.windows import Tumbling, per_window

QUARTER_HOUR: Final = Tumbling(timedelta(minutes=15))


def count_starts_and_ends(trip_events: DataFrame) -> DataFrame:
    """STARTs by pickup zone and ENDs by dropoff zone; an event that comes again counts once."""
    repeats = first_of_each(*TRIP_EVENT.keys, event_time="event_time", within=TRIP_LATENESS)
    zone = F.when(F.col("is_start"), F.col("pickup_zone")).otherwise(F.col("dropoff_zone"))
    return (
        trip_events.transform(repeats)
        .select("event_time", "is_start", zone.alias("zone"))
        .transform(
            per_window,
            QUARTER_HOUR,
            "event_time",
            "zone",
            starts=F.count_if("is_start"),
            ends=F.count_if(~F.col("is_start")),
        )
    )


COUNTS: Final = "Trips that began and ended in each taxi zone, per quarter of an hour of UTC."

ZONE_ACTIVITY: Final = Stream(
    name="taxi/zone_activity",
    reads=(TRIP_EVENTS,),
    build=count_starts_and_ends,
    writes=Table(
        name="taxi/zone_activity",
        schema=StructType(
            [
                StructField("zone", IntegerType(), True),
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("starts", LongType(), True),
                StructField("ends", LongType(), True),
            ]
        ),
        description=COUNTS,
        event_time="window_end",
        keys=("zone", "window_end"),
        days=Daily(column="window_start", start=FIRST_TRIP_DAY),
    ),
    description=COUNTS,
    group=GROUP,
    lateness=TRIP_LATENESS,
    margin=TRIP_LATENESS,
    suite=ZONE_ACTIVITY_SUITE,
    owners=OWNERS,
)
