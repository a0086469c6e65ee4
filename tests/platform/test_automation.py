"""Schedules, and the jobs by which people let groups run or rest."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from tests.platform.conftest import tick

pytestmark = pytest.mark.platform


def test_nothing_is_watched_while_nothing_streams(
    defs: dg.Definitions, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    found = tick(defs, instance, tmp_path, "watch_streams")

    assert found.run_requests == []
    assert found.skip_message == "0 streams should run, and do"


def test_only_streams_that_should_run_and_do_not_are_looked_at(
    defs: dg.Definitions, instance: dg.DagsterInstance, tmp_path: Path, settings: Settings
) -> None:
    for group in ("taxi", "watch"):
        DesiredStore(settings.state).set(group, "run", by="ada", reason="")
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    silent = Heartbeat(
        stream="taxi/rides", group="taxi", run_id="r", pid=1, at=long_ago, state="running"
    )
    beats = HeartbeatStore(settings.state)
    beats.beat(silent)
    (settings.state / "heartbeats" / "taxi.hourly.json").write_text("{")
    beats.beat(replace(silent, stream="taxi/daily", at=datetime.now(UTC)))

    (request,) = tick(defs, instance, tmp_path, "watch_streams").run_requests or []

    # The others have not beaten yet, and were asked for only a moment ago.
    asked = {(k.asset_key.to_user_string(), k.name) for k in request.asset_check_keys or []}
    assert asked == {("taxi/rides", "is_alive"), ("taxi/hourly", "is_alive")}
    assert request.asset_selection == []


def test_watching_needs_no_switch_and_catching_up_does(defs: dg.Definitions) -> None:
    running = {
        name: defs.resolve_schedule_def(name).default_status
        for name in ("watch_streams", "taxi_hourly")
    }

    assert running == {
        "watch_streams": dg.DefaultScheduleStatus.RUNNING,
        "taxi_hourly": dg.DefaultScheduleStatus.STOPPED,
    }


def test_a_group_that_streams_is_not_caught_up_besides(
    defs: dg.Definitions, instance: dg.DagsterInstance, tmp_path: Path, settings: Settings
) -> None:
    assert len(tick(defs, instance, tmp_path, "taxi_hourly").run_requests or []) == 1

    DesiredStore(settings.state).set("taxi", "run", by="ada", reason="")
    found = tick(defs, instance, tmp_path, "taxi_hourly")

    assert found.run_requests == []
    assert "its streams do the work" in (found.skip_message or "")


def test_a_person_lets_groups_run_and_rest(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    defs.resolve_job_def("start_streams").execute_in_process(
        instance=instance, tags={"user": "ada"}
    )
    defs.resolve_job_def("pause_streams").execute_in_process(
        instance=instance,
        run_config={
            "ops": {"pause_streams_op": {"config": {"groups": ["watch"], "reason": "too loud"}}}
        },
    )

    wishes = DesiredStore(settings.state)
    assert (wishes.get("taxi").state, wishes.get("taxi").by) == ("run", "ada")
    assert (wishes.get("watch").state, wishes.get("watch").reason) == ("paused", "too loud")


@pytest.mark.parametrize(
    ("group", "near"),
    [("tax", "; did you mean 'taxi'?"), ("../taxi", "; did"), ("", "; there are")],
)
def test_a_group_that_is_none_is_refused_and_no_other_is_touched(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, group: str, near: str
) -> None:
    result = defs.resolve_job_def("start_streams").execute_in_process(
        instance=instance,
        run_config={"ops": {"start_streams_op": {"config": {"groups": ["taxi", group]}}}},
        raise_on_error=False,
    )

    assert not result.success
    failure = result.failure_data_for_node("start_streams_op")
    assert f"no group is named {group!r}{near}" in str(failure and failure.error)
    assert DesiredStore(settings.state).all() == {}
