from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.model.time import EPOCH, MICROSECOND
from simulator.taxi.new_york_time import instant, instants_of
from simulator.taxi.tlc_file import SPELLINGS, TlcFile, read_trips
from simulator.taxi.trip_events import TripEvent, TripEvents, trip_id

SAMPLES = Path(__file__).parents[3] / "data" / "tlc"
NEW_YORK = ZoneInfo("America/New_York")


def trips(*pickups_and_dropoffs: tuple[str | None, str | None], **columns: str) -> TripEvents:
    count = len(pickups_and_dropoffs)
    values = {name: [columns.get(name)] * count for name in SPELLINGS}
    values["pickup"] = [pickup for pickup, _ in pickups_and_dropoffs]
    values["dropoff"] = [dropoff for _, dropoff in pickups_and_dropoffs]
    text = {name: pa.array(column, pa.string()) for name, column in values.items()}
    return TripEvents(TlcFile("trips.csv", pa.table(text), malformed=0))


def instants(events: TripEvents) -> list[str]:
    return [event.at.strftime("%m-%d %H:%M") for event in events]


def wall(text: str) -> datetime:
    micros = (datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH) // MICROSECOND
    return instant(int(instants_of(np.array([micros]))[0]))


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2024-01-15T12:00", "2024-01-15T17:00Z"),
        ("2024-07-15T12:00", "2024-07-15T16:00Z"),
        ("2014-11-02T00:59:59", "2014-11-02T04:59:59Z"),
        # An hour that occurs twice is the first of the two.
        ("2014-11-02T01:30", "2014-11-02T05:30Z"),
        ("2014-11-02T02:00", "2014-11-02T07:00Z"),
        ("2024-03-10T01:59:59", "2024-03-10T06:59:59Z"),
        # A skipped time moves on by the gap, like ZonedDateTime.of(2024-03-10T02:30, New York).
        ("2024-03-10T02:30", "2024-03-10T07:30Z"),
        ("2024-03-10T03:00", "2024-03-10T07:00Z"),
    ],
)
def test_wall_times_of_winter_summer_and_their_borders(local: str, utc: str) -> None:
    assert wall(local) == datetime.fromisoformat(utc)


@given(
    st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2037, 1, 1))  # noqa: DTZ001
)
def test_every_wall_time_is_read_as_python_reads_it(local: datetime) -> None:
    assert wall(local.isoformat()) == local.replace(tzinfo=NEW_YORK, fold=0).astimezone(UTC)


def test_events_come_in_the_order_in_which_they_happened() -> None:
    events = trips(
        ("2024-01-15 08:00:00", "2024-01-15 09:00:00"),
        ("2024-01-15 07:00:00", "2024-01-15 08:30:00"),
    )

    assert [(event.trip_id, event.is_start) for event in events] == [
        (trip_id("trips.csv", 1), True),
        (trip_id("trips.csv", 0), True),
        (trip_id("trips.csv", 1), False),
        (trip_id("trips.csv", 0), False),
    ]


def test_at_one_instant_rows_keep_their_order_and_a_start_comes_before_its_end() -> None:
    noon = "2024-01-15 12:00:00"

    events = list(trips((noon, noon), ("2024-01-15 11:00:00", noon), (noon, "2024-01-15 13:00:00")))

    assert [(event.trip_id, event.is_start) for event in events if event.at.hour == 17] == [
        (trip_id("trips.csv", 0), True),
        (trip_id("trips.csv", 0), False),
        (trip_id("trips.csv", 1), False),
        (trip_id("trips.csv", 2), True),
    ]


def test_money_is_exact_and_known_at_the_end_only() -> None:
    events = trips(
        ("2024-01-15 08:00:00", "2024-01-15 09:00:00"),
        fare="17.1",
        tip="0.0",
        total="17.16",
        pickup_zone="236.0",
        dropoff_zone="87",
        passenger_count="2.0",
        vendor="2",
    )

    start, end = events

    assert start == TripEvent(
        trip_id=trip_id("trips.csv", 0),
        is_start=True,
        at=datetime(2024, 1, 15, 13, tzinfo=UTC),
        pickup_zone=236,
        dropoff_zone=87,
        passenger_count=2,
        vendor=2,
    )
    assert (str(end.fare), str(end.tip), str(end.total)) == ("17.10", "0.00", "17.16")
    assert +events.unread == {}


def test_values_that_are_no_numbers_are_counted_once_a_trip() -> None:
    events = trips(
        ("2024-01-15 08:00:00", "2024-01-15 09:00:00"),
        fare="abc",
        tip="nan",
        total="12.345",
        passenger_count="1.5",
        vendor="CMT",
    )

    _, end = events

    assert (end.fare, end.tip, end.total, end.passenger_count) == (
        None,
        None,
        Decimal("12.34"),
        None,
    )
    assert dict(+events.unread) == {
        "fare": 1,
        "tip": 1,
        "total_rounded": 1,
        "passenger_count": 1,
        "vendor": 1,
    }


def test_trips_that_cannot_be_replayed_are_counted_by_reason() -> None:
    good = ("2024-01-15 08:00:00", "2024-01-15 09:00:00")

    events = trips(
        good,
        (good[1], good[0]),
        (None, good[1]),
        (good[0], None),
        ("yesterday", good[1]),
        (good[0], "2024-02-30 09:00:00"),
        (None, None),
    )

    assert events.trips == 1
    assert len(list(events)) == 2
    assert events.skipped == {
        "dropoff_before_pickup": 1,
        "no_pickup_time": 2,
        "no_dropoff_time": 1,
        "unparsable_pickup_time": 1,
        "unparsable_dropoff_time": 1,
    }


def test_a_trip_through_the_spring_night_lasts_an_hour_less_than_its_clocks_say() -> None:
    assert instants(trips(("2024-03-10 01:30:00", "2024-03-10 03:30:00"))) == [
        "03-10 06:30",
        "03-10 07:30",
    ]


def test_a_trip_into_the_repeated_hour_that_would_run_backwards_is_counted() -> None:
    # Really ten minutes: from 01:55 summer time to 01:05 winter time. Nothing in the file says so.
    events = trips(("2014-11-02 01:55:00", "2014-11-02 01:05:00"))

    assert events.skipped == {"dropoff_before_pickup": 1}


@pytest.mark.parametrize(
    "text", ["2024-01-15 08:00:00", "2024-01-15T08:00:00", "01/15/2024 08:00:00 AM"]
)
def test_times_are_read_in_the_formats_of_all_sources(text: str) -> None:
    assert instants(trips((text, text))) == ["01-15 13:00"] * 2


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize(("zone", "noon"), [(None, "01-15 17:00"), ("UTC", "01-15 12:00")])
def test_parquet_times_of_any_unit_are_wall_clock_times_unless_they_have_a_zone(
    unit: Literal["ms", "us", "ns"], zone: str | None, noon: str
) -> None:
    at = datetime(2024, 1, 15, 12, tzinfo=UTC if zone else None)
    column = pa.array([at], pa.timestamp(unit, zone))
    empty = {name: pa.nulls(1, pa.string()) for name in SPELLINGS}
    table = pa.table(empty | {"pickup": column, "dropoff": column})

    assert instants(TripEvents(TlcFile("a.parquet", table, malformed=0))) == [noon] * 2


def test_a_real_file_is_turned_whole() -> None:
    file = read_trips(SAMPLES / "green_tripdata_2024-01_first2000.parquet")
    totals = [Decimal(str(total)) for total in file.trips.column("total").to_pylist()]

    events = list(TripEvents(file))

    assert [event.at for event in events] == sorted(event.at for event in events)
    assert len({event.trip_id for event in events if event.is_start}) == 2000
    charged = [event.total for event in events if event.total is not None]
    assert (len(charged), sum(charged)) == (2000, sum(totals))


def test_a_malformed_line_is_a_reason_too() -> None:
    empty = {name: pa.nulls(0, pa.string()) for name in SPELLINGS}

    events = TripEvents(TlcFile("a.csv", pa.table(empty), malformed=3))

    assert (events.trips, events.skipped, list(events)) == (0, {"malformed_line": 3}, [])
