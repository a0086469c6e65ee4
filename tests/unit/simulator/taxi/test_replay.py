import json
import threading
import time
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from simulator.landing.folder import files_in_landing_order
from simulator.landing.pace import Progress
from simulator.taxi.replay import TRIP_EVENTS_FOLDER, replay

SAMPLES = Path(__file__).parents[3] / "data" / "tlc"
GREEN = SAMPLES / "green_tripdata_2024-01_first2000.parquet"
TEN_A_MONTH = SAMPLES / "gx_yellow_10_per_month.csv"


def lines(landing: Path) -> list[str]:
    return [
        line
        for file in files_in_landing_order(landing / TRIP_EVENTS_FOLDER)
        for line in file.read_text().splitlines()
    ]


def test_a_month_lands_in_the_order_of_its_events(tmp_path: Path) -> None:
    replayed = replay(GREEN, tmp_path, speed=None)

    rows = [json.loads(line) for line in lines(tmp_path)]
    times = [row["event_time"] for row in rows]
    assert (replayed.trips, replayed.skipped, replayed.unread) == (2000, {}, {})
    assert replayed.paced.rows == len(rows) == 4000
    assert times == sorted(times)
    assert times[0].endswith(".000Z")
    ended = {row["trip_id"] for row in rows if not row["is_start"]}
    assert ended == {row["trip_id"] for row in rows if row["is_start"]}


def test_the_fields_of_an_event(tmp_path: Path) -> None:
    one_trip = tmp_path / "one.csv"
    one_trip.write_text(
        "VendorID,pickup_datetime,dropoff_datetime,PULocationID,DOLocationID,passenger_count,"
        "fare_amount,tip_amount,total_amount\n"
        "2,2019-07-01 12:00:00,2019-07-01 12:10:30,230,237,1.0,8.5,2.06,12.36\n"
    )

    replay(one_trip, tmp_path, speed=None)

    start, end = lines(tmp_path)
    name = json.loads(start)["trip_id"]
    assert start == (
        f'{{"trip_id":"{name}","is_start":true,"event_time":"2019-07-01T16:00:00.000Z",'
        '"pickup_zone":230,"dropoff_zone":237,"passenger_count":1,"vendor":2,'
        '"fare":null,"tip":null,"total":null}'
    )
    assert end == (
        f'{{"trip_id":"{name}","is_start":false,"event_time":"2019-07-01T16:10:30.000Z",'
        '"pickup_zone":230,"dropoff_zone":237,"passenger_count":1,"vendor":2,'
        '"fare":8.50,"tip":2.06,"total":12.36}'
    )


def test_trips_in_are_trips_replayed_and_trips_skipped(tmp_path: Path) -> None:
    replayed = replay(TEN_A_MONTH, tmp_path, speed=None)

    assert replayed.trips + sum(replayed.skipped.values()) == 360
    assert replayed.skipped == {"dropoff_before_pickup": 2}
    assert len(lines(tmp_path)) == 2 * replayed.trips


def test_no_file_is_longer_than_asked(tmp_path: Path) -> None:
    replay(GREEN, tmp_path, speed=None, unpaced_span=timedelta(days=40), max_rows=300)

    files = files_in_landing_order(tmp_path / TRIP_EVENTS_FOLDER)
    assert max(len(file.read_text().splitlines()) for file in files) == 300
    assert len(lines(tmp_path)) == 4000


def test_a_speed_paces_the_landing_and_long_gaps_are_not_sat_out(tmp_path: Path) -> None:
    two_trips = tmp_path / "two.csv"
    two_trips.write_text(
        "pickup_datetime,dropoff_datetime\n"
        "2009-01-01 12:00:00,2009-01-01 12:10:00\n"
        "2019-07-01 12:00:00,2019-07-01 12:10:00\n"
    )
    began = time.monotonic()

    replayed = replay(
        two_trips,
        tmp_path,
        speed=3600,
        every=timedelta(seconds=0.1),
        longest_wait=timedelta(seconds=0.2),
    )

    # A tenth of a second between the files of each trip, and 0.2 for the ten years between them.
    assert 0.4 <= time.monotonic() - began < 20
    assert (replayed.paced.files, replayed.paced.rows) == (4, 4)


def test_a_replay_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    stop = threading.Event()

    def stop_soon(progress: Progress) -> None:
        if progress.files == 3:
            stop.set()

    landing, manifest = tmp_path / "parts", tmp_path / "parts.jsonl"
    first = replay(GREEN, landing, speed=None, manifest=manifest, stop=stop, on_progress=stop_soon)
    second = replay(GREEN, landing, speed=None, manifest=manifest)
    replay(GREEN, tmp_path / "whole", speed=None)

    assert first.paced.stopped
    assert first.paced.files + second.paced.files == len(
        files_in_landing_order(tmp_path / "whole" / TRIP_EVENTS_FOLDER)
    )
    assert lines(landing) == lines(tmp_path / "whole")


def test_a_second_file_lands_behind_the_first(tmp_path: Path) -> None:
    first = replay(TEN_A_MONTH, tmp_path, speed=None)
    second = replay(GREEN, tmp_path, speed=None)

    rows = [json.loads(line, parse_float=Decimal) for line in lines(tmp_path)]
    assert len(rows) == first.paced.rows + second.paced.rows
    assert len({(row["trip_id"], row["is_start"]) for row in rows}) == len(rows)
