"""Looks of the restart sensor at a real instance."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData

from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.sensors import launched_runs
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until

pytestmark = pytest.mark.platform

STREAM_TAGS = {"rivermark/group": "taxi", "rivermark/mode": "continuous"}

Look = Callable[..., SensorExecutionData]


def tick(
    defs: dg.Definitions, instance: dg.DagsterInstance, home: Path, cursor: str | None = None
) -> SensorExecutionData:
    """A tick as the daemon has it evaluated."""
    sensor = defs.resolve_sensor_def("restart_streams")
    with dg.build_sensor_context(
        instance=instance,
        cursor=cursor,
        definitions=defs,
        sensor_name="restart_streams",
        resources={"rivermark_settings": SettingsResource(overrides={"home": str(home)})},
    ) as context:
        return sensor.evaluate_tick(context)


@pytest.fixture
def look(defs: dg.Definitions, instance: dg.DagsterInstance, tmp_path: Path) -> Look:
    return lambda cursor=None: tick(defs, instance, tmp_path, cursor)


def requests(found: SensorExecutionData) -> list[tuple[str | None, str | None]]:
    return [(r.job_name, r.run_key) for r in found.run_requests or []]


def a_run(
    defs: dg.Definitions, instance: dg.DagsterInstance, status: dg.DagsterRunStatus, **tags: str
) -> dg.DagsterRun:
    return instance.create_run_for_job(
        job_def=defs.resolve_job_def("taxi_live"), status=status, tags={**STREAM_TAGS, **tags}
    )


def a_beat(settings: Settings, run: dg.DagsterRun, *, age: timedelta, **changes: object) -> None:
    beat = Heartbeat(
        stream="taxi/rides",
        group="taxi",
        run_id=run.run_id,
        pid=os.getpid(),
        at=datetime.now(UTC) - age,
        state="running",
        last_progress_at=datetime.now(UTC),
    )
    HeartbeatStore(settings.state).beat(replace(beat, **changes))  # type: ignore[arg-type]


def wish(settings: Settings) -> None:
    DesiredStore(settings.state).set("taxi", "run", by="ada", reason="")


def test_without_a_wish_nothing_starts(look: Look) -> None:
    found = look()

    assert requests(found) == []
    assert found.skip_message is not None
    assert "taxi: paused: never set to run" in found.skip_message


def test_a_wish_starts_the_groups_own_job_once_with_its_number_and_cause(
    look: Look, settings: Settings
) -> None:
    wish(settings)

    first = look()
    second = look(first.cursor)

    assert requests(first) == [("taxi_live", "taxi:1")]
    (request,) = first.run_requests or []
    assert request.tags["rivermark/incarnation"] == "1"
    assert request.tags["rivermark/cause"] == "asked_for_by_ada"
    assert requests(second) == []


def test_the_sensor_runs_without_being_switched_on(defs: dg.Definitions) -> None:
    sensor = defs.resolve_sensor_def("restart_streams")

    assert sensor.default_status is dg.DefaultSensorStatus.RUNNING
    assert (sensor.minimum_interval_seconds or 99) <= 15


def test_b065_a_run_whose_process_is_gone_is_failed_and_replaced_in_one_look(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    zombie = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
    gone = 99_999_999
    a_beat(settings, zombie, age=timedelta(minutes=1), pid=gone)

    found = look()

    record = instance.get_run_by_id(zombie.run_id)
    assert record is not None
    assert record.status is dg.DagsterRunStatus.FAILURE
    assert requests(found) == [("taxi_live", "taxi:1")]


def test_a_run_that_was_killed_a_moment_ago_is_replaced_in_the_same_look(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    """The next one is five seconds later than the end of its pause."""
    wish(settings)
    a_beat(
        settings,
        a_run(defs, instance, dg.DagsterRunStatus.STARTED),
        age=timedelta(seconds=1),
        pid=99_999_999,
    )

    assert requests(look()) == [("taxi_live", "taxi:1")]


def test_a_living_run_is_left_alone_whatever_job_started_it(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    run = instance.create_run_for_job(
        job_def=defs.resolve_implicit_global_asset_job_def(),
        status=dg.DagsterRunStatus.STARTED,
        tags=STREAM_TAGS,
    )
    a_beat(settings, run, age=timedelta(seconds=1))

    assert requests(look()) == []


def test_b067_a_run_on_its_way_is_not_doubled(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    first = look()
    a_run(defs, instance, dg.DagsterRunStatus.STARTING, **{"rivermark/incarnation": "1"})

    cursor = first.cursor
    for _ in range(5):
        found = look(cursor)
        assert requests(found) == []
        cursor = found.cursor


def test_b072_a_cancelled_run_makes_the_group_rest(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    run = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
    instance.report_run_canceled(run)

    assert requests(look()) == []
    assert DesiredStore(settings.state).get("taxi").state == "paused"


def test_n059_a_living_run_is_seen_behind_newer_ones_that_were_cancelled_in_the_queue(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    old = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
    a_beat(settings, old, age=timedelta(seconds=1))
    for _ in range(7):
        instance.report_run_canceled(a_run(defs, instance, dg.DagsterRunStatus.NOT_STARTED))

    assert requests(look()) == []
    assert DesiredStore(settings.state).get("taxi").state == "run"

    a_beat(settings, old, age=timedelta(minutes=1), pid=99_999_999)

    assert requests(look()) == [("taxi_live", "taxi:1")]
    assert DesiredStore(settings.state).get("taxi").state == "run"
    assert requests(look()) == [("taxi_live", "taxi:1")], "its corrected record counts as well"


def test_n059_a_run_that_waited_for_long_has_its_time_to_start(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    a_run(defs, instance, dg.DagsterRunStatus.STARTING)

    (run,) = launched_runs(instance, "taxi")

    assert run.started_at is not None
    assert abs(run.started_at - datetime.now(UTC)) < timedelta(minutes=5)


def test_b068_a_lost_cursor_gives_a_key_that_was_never_used(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    run = a_run(defs, instance, dg.DagsterRunStatus.STARTED, **{"rivermark/incarnation": "41"})
    instance.report_run_failed(run)
    wish(settings)

    assert requests(look("no cursor of ours")) == [("taxi_live", "taxi:42")]
    for _ in range(6):
        instance.report_run_failed(a_run(defs, instance, dg.DagsterRunStatus.STARTED))
    wish(settings)
    assert requests(look("nor is this")) == [("taxi_live", "taxi:42")]


def test_b070_an_unreadable_heartbeat_is_a_failed_check_once(
    look: Look, settings: Settings, tmp_path: Path
) -> None:
    folder = settings.state / "heartbeats"
    folder.mkdir(parents=True)
    (folder / "taxi.rides.json").write_text('{"stream": "ta')

    first = look()
    second = look(first.cursor)

    (event,) = first.asset_events
    assert isinstance(event, dg.AssetCheckEvaluation)
    assert (event.asset_key.path, event.check_name, event.passed) == (
        ["taxi", "rides"],
        "is_alive",
        False,
    )
    assert "taxi.rides.json" in (event.description or "")
    assert list(second.asset_events) == []


def test_an_error_beyond_restart_is_told_on_every_stream_of_the_group(
    look: Look, defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    wish(settings)
    run = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
    a_beat(
        settings,
        run,
        age=timedelta(0),
        state="failed",
        error="CheckpointIncompatible: other declaration",
        restartable=False,
    )
    instance.report_run_failed(run)

    found = look()

    assert requests(found) == []
    names = {e.asset_key.to_user_string() for e in found.asset_events}
    assert names == {"taxi/rides", "taxi/hourly", "taxi/daily", "taxi/local"}
    assert {e.check_name for e in found.asset_events if isinstance(e, dg.AssetCheckEvaluation)} == {
        "is_alive"
    }


def test_bounded_runs_are_none_of_the_sensors_business(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    instance.create_run_for_job(
        job_def=defs.resolve_job_def("taxi_catch_up"), status=dg.DagsterRunStatus.STARTED
    )

    assert launched_runs(instance, "taxi") == []


def test_b071_the_pool_place_of_a_dead_run_is_given_back_when_its_successor_starts(
    defs: dg.Definitions, settings: Settings, tmp_path: Path
) -> None:
    """Needs a storage that knows pools; the run queue alone would wait for the place."""
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        wish(settings)
        storage = instance.event_log_storage
        storage.set_concurrency_slots("taxi_streams", 1)
        run = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
        claim = storage.claim_concurrency_slot("taxi_streams", run.run_id, "taxi_streams")
        assert claim.is_claimed
        instance.report_run_failed(run)
        a_beat(settings, run, age=timedelta(minutes=1), pid=99_999_999)

        assert requests(tick(defs, instance, tmp_path))

        successor = storage.claim_concurrency_slot("taxi_streams", "the next", "taxi_streams")
        assert successor.is_claimed


def test_an_alert_runs_the_command_that_notifies_once(
    look: Look,
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note = tmp_path / "note"
    append = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')"
    command = json.dumps([sys.executable, "-c", append, str(note)])
    monkeypatch.setenv("RIVERMARK_NOTIFY_COMMAND", command)
    wish(settings)
    run = a_run(defs, instance, dg.DagsterRunStatus.STARTED)
    a_beat(settings, run, age=timedelta(0), state="failed", error="lost", restartable=False)
    instance.report_run_failed(run)

    first = look()
    look(first.cursor)

    wait_until(note.exists, 20)
    look(first.cursor)
    assert note.read_text() == "beyond_restart:taxi\n"
