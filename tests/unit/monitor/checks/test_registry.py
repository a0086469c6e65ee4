from dataclasses import replace
from datetime import timedelta

import pytest

from rivermark import Contract, Field, Topology
from rivermark.model.stream import Ingest, Stream
from rivermark.monitor.checks.liveness import alive
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.checks.row_checks import (
    late_share,
    quarantine_share,
    rows_dropped,
    rows_unique,
    static_rows_unique,
)
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.runtime.code_version import code_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import FAILURES, WAITING, Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.runtime.supervision.state_file import UnreadableState
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.unit.conftest import Put
from tests.unit.monitor.conftest import HOURLY, NOON


def hourly(rides: Ingest) -> Stream:
    return Stream(
        name="taxi/hourly",
        reads=(rides,),
        build=lambda frame: frame,
        writes=HOURLY,
        description="Tips an hour.",
        group="taxi",
    )


def test_an_ingest_and_a_derived_stream_are_watched_for_different_things(rides: Ingest) -> None:
    assert {(c.name, c.table.name, c.severity) for c in checks_of_stream(rides)} == {
        ("is_alive", "taxi/rides", "critical"),
        ("every_row_is_accounted_for", "taxi/rides", "critical"),
        ("few_rows_are_late", "taxi/rides_late", "warning"),
        ("few_rows_are_set_aside", "taxi/rides_quarantine", "warning"),
        ("files_are_as_they_were_read", "taxi/rides_raw", "warning"),
    }
    assert {(c.name, c.table.name) for c in checks_of_stream(hourly(rides))} == {
        ("is_alive", "taxi/hourly"),
        ("rows_are_unique", "taxi/hourly"),
        ("no_row_is_late_downstream", "taxi/hourly"),
    }


def test_b058_rows_without_a_day_fail_the_check_of_a_refreshed_stream(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    refreshed = replace(hourly(rides), kind="refresh")
    check = next(c for c in checks_of_stream(refreshed) if c.name == "every_row_has_a_day")
    assert check.evaluate(settings, NOON).passed

    batch = {"stream": refreshed.name, "generation": 0, "batch_id": 1}
    put(STREAM_PROGRESS, batch | {"counters": [("rows_without_a_day", 3)]})
    put(STREAM_PROGRESS, batch | {"batch_id": 2, "counters": [("rows_without_a_day", 2)]})
    result = check.evaluate(settings, NOON)
    assert not result.passed
    assert result.numbers == {"rows_without_a_day": 5}


def test_nothing_in_a_dump_can_be_late(rides: Ingest) -> None:
    assert "few_rows_are_late" not in {
        c.name for c in checks_of_stream(replace(rides, lateness=None))
    }


@pytest.mark.parametrize(("late", "holds"), [(0, True), (1, True), (2, False)])
def test_the_late_share_is_that_of_the_valid_rows(
    settings: Settings, put: Put, rides: Ingest, late: int, holds: bool
) -> None:
    put(rides.admitted, *[{"ride_id": n} for n in range(10 - late)])
    put(rides.late, *[{"ride_id": n} for n in range(late)])

    answer = late_share(settings, rides)

    assert answer.numbers["share"] == late / 10
    assert answer.passed is holds


def test_without_rows_no_share_is_too_large(settings: Settings, rides: Ingest) -> None:
    assert late_share(settings, rides).passed
    assert quarantine_share(settings, rides).passed


def test_files_set_aside_whole_count_although_no_row_of_them_landed(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    put(rides.raw)
    put(rides.quarantine, {"_file": "cut.gz", "reasons": ["file_unreadable"]})

    assert not quarantine_share(settings, rides).passed


def test_a_row_dropped_downstream_is_told_with_its_batch(settings: Settings, put: Put) -> None:
    batch = {"stream": "taxi/hourly", "run_id": "run-1", "dropped_by_watermark": 0}
    put(STREAM_PROGRESS, batch | {"batch_id": 1}, batch | {"batch_id": 2})
    put(STREAM_PROGRESS, batch | {"stream": "web/clicks", "dropped_by_watermark": 9})
    assert rows_dropped(settings, "taxi/hourly").passed

    put(STREAM_PROGRESS, batch | {"batch_id": 3, "dropped_by_watermark": 4})
    answer = rows_dropped(settings, "taxi/hourly")

    assert not answer.passed
    assert answer.numbers == {"rows_dropped": 4, "batches": 3}
    assert [o["batch_id"] for o in answer.examples] == [3]


def test_a_name_with_a_quote_is_a_value_and_no_sql(settings: Settings, put: Put) -> None:
    put(STREAM_PROGRESS, {"stream": "taxi/hourly", "dropped_by_watermark": 4})

    assert rows_dropped(settings, "x' OR '1'='1").numbers["rows_dropped"] == 0


def test_a_row_that_is_there_twice_is_told_with_its_keys(settings: Settings, put: Put) -> None:
    row = {"driver_id": 7, "window_end": NOON, "tips": 3}
    put(HOURLY, row, row | {"driver_id": 8})
    assert rows_unique(settings, HOURLY).passed

    put(HOURLY, row | {"tips": 4})
    answer = rows_unique(settings, HOURLY)

    assert not answer.passed
    assert answer.numbers == {"rows": 3, "rows_surplus": 1}
    assert answer.examples[0]["driver_id"] == "7"


def test_personal_keys_are_counted_and_not_shown(settings: Settings, put: Put) -> None:
    personal = replace(HOURLY, personal=("driver_id",))
    row = {"driver_id": 7, "window_end": NOON}
    put(personal, row, row)

    answer = rows_unique(settings, personal)

    assert not answer.passed
    assert answer.examples == ()


BEAT = Heartbeat(stream="taxi/rides", group="taxi", run_id="run-1", pid=1, at=NOON, state="running")


def should_run(settings: Settings) -> None:
    DesiredStore(settings.state).set("taxi", "run", by="ada", reason="")


def test_a_group_that_rests_need_not_be_alive(settings: Settings, rides: Ingest) -> None:
    assert alive(settings, rides, NOON).passed


def test_a_stream_that_should_run_is_given_time_to_start(settings: Settings, rides: Ingest) -> None:
    should_run(settings)
    since = DesiredStore(settings.state).get("taxi").at
    assert since is not None

    assert alive(settings, rides, since + timedelta(minutes=1)).passed
    assert not alive(settings, rides, since + timedelta(minutes=5)).passed


@pytest.mark.parametrize(
    ("beat", "holds"),
    [
        pytest.param({"last_progress_at": NOON}, True, id="beats and moves"),
        pytest.param({"at": NOON - timedelta(minutes=4)}, False, id="silent"),
        pytest.param(
            {"last_progress_at": NOON - timedelta(hours=5), "numbers": {WAITING: 0}},
            True,
            id="nothing to do for hours",
        ),
        pytest.param(
            {"waiting_since": NOON - timedelta(hours=5), "numbers": {WAITING: 3}},
            False,
            id="stands still while files wait",
        ),
        pytest.param(
            {
                "last_progress_at": NOON - timedelta(hours=5),
                "waiting_since": NOON - timedelta(seconds=1),
                "numbers": {WAITING: 3},
            },
            True,
            id="r20 the first files in hours have just come",
        ),
        pytest.param({"state": "failed", "at": NOON - timedelta(minutes=9)}, False, id="failed"),
        pytest.param(
            {"state": "starting", "last_progress_at": NOON, "numbers": {FAILURES: 1}},
            True,
            id="started again after a failure",
        ),
        pytest.param(
            {"state": "starting", "last_progress_at": NOON, "numbers": {FAILURES: 3}},
            False,
            id="started again and again",
        ),
    ],
)
def test_a_stream_that_should_run_must_beat_and_move(
    settings: Settings, rides: Ingest, beat: dict, holds: bool
) -> None:
    should_run(settings)
    path = settings.state / "desired" / "taxi.json"
    wished = DesiredStore(settings.state).get("taxi").at
    assert wished is not None
    path.write_text(path.read_text().replace(str(wished.year), "2020", 1))
    HeartbeatStore(settings.state).beat(replace(BEAT, **beat))

    assert alive(settings, rides, NOON).passed is holds


def test_a_stream_that_runs_older_code_than_the_repository_is_named(
    settings: Settings, rides: Ingest
) -> None:
    should_run(settings)
    stream, store = hourly(rides), HeartbeatStore(settings.state)
    beat = replace(BEAT, stream=stream.name, group=stream.group)

    store.beat(replace(beat, code=code_of(stream)))
    assert "older code" not in alive(settings, stream, NOON).observed
    store.beat(replace(beat, code="assets.taxi:hourly@000000000000"))
    older = alive(settings, stream, NOON)

    assert older.observed.endswith("repository: rivermark upgrade taxi/hourly")
    assert older.numbers["runs_older_code"] == 1


def test_of_a_stream_whose_heartbeat_cannot_be_read_nothing_is_said(
    settings: Settings, rides: Ingest
) -> None:
    should_run(settings)
    HeartbeatStore(settings.state).beat(BEAT)
    (settings.state / "heartbeats" / "taxi.rides.json").write_text("{")

    with pytest.raises(UnreadableState):
        alive(settings, rides, NOON)


def places(**more: object) -> Ingest:
    contract = Contract(
        fields=(
            Field("driver_id", "long", required=True),
            Field("since", "timestamp", required=True),
        ),
        event_time="since",
    )
    declared = {"kind": "lookup", "keys": ("driver_id",), "contract": contract} | more
    return Ingest(
        name="taxi/drivers",
        source=FileSource(folder="drivers"),
        description="Drivers.",
        group="taxi",
        **declared,  # type: ignore[arg-type]
    )


def test_a_lookup_is_checked_for_its_keys_and_never_for_lateness_or_days(rides: Ingest) -> None:
    drivers = places()
    checks = [*checks_of_stream(drivers), *completeness_checks(Topology([drivers, rides]), drivers)]

    assert {(c.name, c.table.name) for c in checks} == {
        ("is_alive", "taxi/drivers"),
        ("every_row_is_accounted_for", "taxi/drivers"),
        ("few_rows_are_set_aside", "taxi/drivers_quarantine"),
        ("files_are_as_they_were_read", "taxi/drivers_raw"),
        ("rows_are_unique", "taxi/drivers"),
    }


def test_a_table_joined_whole_must_have_one_row_a_key_and_a_lookup_any(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    drivers = places()
    joined = replace(hourly(rides), static=(drivers,), build=lambda frame, names: frame)
    assert "joined_tables_have_one_row_a_key" in {c.name for c in checks_of_stream(joined)}

    empty = static_rows_unique(settings, joined)
    assert (empty.passed, empty.severity) == (False, "warning")
    assert empty.observed == (
        "taxi/drivers: no row, so every join with it finds nothing; "
        "fill it: rivermark run taxi/drivers"
    )
    put(drivers.admitted, {"driver_id": 7}, {"driver_id": 8})
    assert static_rows_unique(settings, joined).passed

    put(drivers.admitted, {"driver_id": 7})
    twice = static_rows_unique(settings, joined)
    assert (twice.passed, twice.severity, twice.numbers["rows_surplus"]) == (False, "critical", 1)
    assert twice.observed.startswith("taxi/drivers: 1 keys of (driver_id) more than once")
