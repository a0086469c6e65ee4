"""Days that follow from changed rows: by margins, by zones, and down the lineage."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from assets.taxi.enrichment import RIDES_WITH_FARES
from assets.taxi.long_rides import LONG_RIDES
from assets.taxi.streams import EVENT_STREAMS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark.backfill.affected_days import Changed, affected_days, all_affected_days
from rivermark.model.table import Daily
from rivermark.model.topology import Topology

FIRST, SECOND = date(2020, 1, 1), date(2020, 1, 2)
NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
LAST_HOUR = datetime(2020, 1, 1, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("hour", "days"), [(NOON, {FIRST}), (LAST_HOUR, {FIRST, SECOND})], ids=["noon", "last hour"]
)
def test_a_margin_reaches_into_the_next_day(hour: datetime, days: set[date]) -> None:
    changed = {"taxi/clean_rides": Changed.in_hours([hour])}

    assert affected_days(LONG_RIDES, changed) == days
    assert affected_days(RIDES_WITH_FARES, changed) == days
    assert affected_days(DRIVER_TIPS, {"taxi/clean_fares": Changed.in_hours([hour])}) == {FIRST}


def test_the_last_window_of_a_day_does_not_reach_into_the_next_one() -> None:
    # Its end is midnight: an hour of the next day by event time, but of the same day by its start.
    midnight = LAST_HOUR + timedelta(hours=1)
    changed = {"taxi/driver_tips": Changed(frozenset({FIRST}), frozenset({midnight}))}

    assert affected_days(HOURLY_WINNERS, changed) == {FIRST}


def test_days_of_another_zone_are_those_that_the_hour_lies_in() -> None:
    table = replace(
        DRIVER_TIPS.tables[0], days=Daily("window_start", FIRST, zone="America/New_York")
    )
    changed = {"taxi/clean_fares": Changed.in_hours([datetime(2020, 1, 2, 4, tzinfo=UTC)])}

    assert affected_days(replace(DRIVER_TIPS, writes=table), changed) == {FIRST}


def test_days_before_a_table_begins_are_left_out() -> None:
    early = datetime(2019, 12, 31, 12, tzinfo=UTC)

    assert affected_days(DRIVER_TIPS, {"taxi/clean_fares": Changed.in_hours([early])}) == set()


def test_everything_below_an_ingest_is_reached_in_the_order_of_the_lineage() -> None:
    topology = Topology(EVENT_STREAMS)

    names = [s.name for s in topology.downstream(["taxi/fare_events"])]

    assert names == [
        "taxi/clean_fares",
        "taxi/rides_with_fares",
        "taxi/driver_tips",
        "taxi/hourly_winners",
    ]
    reached = all_affected_days(topology, {"taxi/fare_events": Changed.in_hours([NOON])})
    assert reached == {name: {FIRST} for name in names}
