"""Where trips begin and end, per taxi zone and quarter of an hour, as they are replayed."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.ingest import FIRST_TRIP_DAY, TAXI, TRIP_EVENTS, TRIP_LATENESS
from assets.taxi.serving import activity_sinks, delivery
from assets.taxi.trip_events import TRIP_EVENT
from assets.taxi.trips.zones import LAST as LAST_ZONE
from rivermark import expect
from rivermark.operators import TumblingWindow, first_of_each, per_window
from rivermark.quality import no_overlap

QUARTER_HOUR: Final = TumblingWindow(timedelta(minutes=15))


def count_starts_and_ends(trip_events: DataFrame) -> DataFrame:
    """STARTs by pickup zone and ENDs by dropoff zone; a repeated event counts once."""
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


TO_DATABASE: Final = activity_sinks()

ZONE_ACTIVITY: Final = TAXI.stream(
    "taxi/zone_activity",
    (
        "zone int COMMENT 'Taxi zone of the TLC.', "
        "window_start timestamp, window_end timestamp, "
        "starts long COMMENT 'Trips that began there.', "
        "ends long COMMENT 'Trips that ended there.'"
    ),
    reads=TRIP_EVENTS,
    build=count_starts_and_ends,
    sinks=TO_DATABASE,
    description=(
        "Trips that began and ended in each taxi zone, per quarter of an hour of UTC. "
        + delivery(TO_DATABASE, "database", "make demo-postgres")
    ),
    keys=("zone", "window_end"),
    days=TAXI.days("window_start", start=FIRST_TRIP_DAY),
    lateness=TRIP_LATENESS,
    margin=TRIP_LATENESS,
    expect=[
        expect.unique(("zone", "window_end")),
        expect.pair_ordered("window_start", "window_end", strictly=True),
        no_overlap("zone"),
        expect.between("zone", 1, LAST_ZONE),
        expect.no_rows_where("starts + ends < 1", name="a zone with a row has had a trip"),
    ],
)
