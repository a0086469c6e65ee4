import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from simulator.taxi.arrivals import rides_as_they_arrive
from simulator.taxi.clock import RideClock
from simulator.taxi.fares import fares
from simulator.taxi.rides import rides
from simulator.taxi.training import land_training
from simulator.taxi.truth import truth_of
from simulator.taxi.wire import (
    fare_from_line,
    read_fares,
    read_rides,
    ride_from_line,
    to_line,
)


def test_the_fields_of_a_start() -> None:
    (ride,) = rides(1, 1)

    assert to_line(ride.start) == (
        '{"ride_id":1,"is_start":true,"event_time":"2020-01-01T12:00:20.000Z",'
        '"start_time":"2020-01-01T12:00:20.000Z","end_time":null,'
        '"start_lon":-73.76763916015625,"start_lat":40.88663864135742,'
        '"end_lon":-73.84383392333984,"end_lat":40.789669036865234,'
        '"passenger_count":3,"taxi_id":2013000185,"driver_id":2013000185}'
    )


def test_the_fields_of_an_end() -> None:
    (ride,) = rides(1, 1)
    row = json.loads(to_line(ride.end))

    assert (row["is_start"], row["end_time"]) == (False, "2020-01-01T13:22:20.000Z")
    assert row["event_time"] == row["end_time"]


def test_the_fields_of_a_fare() -> None:
    (fare,) = fares(1, 1)

    assert to_line(fare) == (
        '{"ride_id":1,"taxi_id":2013000185,"driver_id":2013000185,'
        '"event_time":"2020-01-01T12:00:20.000Z","payment_type":"CASH",'
        '"tip":33.00,"tolls":0.00,"total_fare":118.00}'
    )


def test_events_come_back_from_their_lines() -> None:
    odd = RideClock(datetime(2024, 5, 1, 3, 4, 5, 678901, UTC), timedelta(microseconds=7))
    for ride in rides(1, 300, odd):
        assert ride_from_line(to_line(ride.start)) == ride.start
        assert ride_from_line(to_line(ride.end)) == ride.end
    for fare in fares(1, 300, odd):
        back = fare_from_line(to_line(fare))
        assert back == fare
        assert isinstance(back.tip, Decimal)
        assert back.tip.as_tuple() == fare.tip.as_tuple()


def test_a_line_that_is_no_event_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        ride_from_line('{"ride_id":"one"}')


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_the_training_lands_in_its_own_order_and_reads_back(tmp_path: Path, ending: str) -> None:
    landed = land_training(tmp_path, 203, blocks_a_file=7, fares_a_file=50, ending=ending)

    ride_files, fare_files = read_rides(tmp_path), read_fares(tmp_path)
    assert [e for rows in ride_files for e in rows] == list(rides_as_they_arrive(203))
    assert [e for rows in fare_files for e in rows] == list(fares(1, 203))
    assert len(landed) == len(ride_files) + len(fare_files)
    assert sum(file.rows for file in landed) == 3 * 203


def test_nothing_of_the_training_is_late_at_the_strictest_door(tmp_path: Path) -> None:
    land_training(tmp_path, 1000, blocks_a_file=3, fares_a_file=10)

    truth = truth_of(tmp_path, lateness=timedelta(milliseconds=1))
    assert (truth.rides.late, truth.fares.late) == ([], [])
    assert (len(truth.rides.admitted), len(truth.fares.admitted)) == (2000, 1000)


def test_a_landing_that_does_not_exist_holds_nothing(tmp_path: Path) -> None:
    assert read_rides(tmp_path / "none") == []
