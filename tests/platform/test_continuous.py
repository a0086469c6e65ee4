"""A run that is the life of its streams."""

import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import pytest
from dagster._utils.interrupts import setup_interrupt_handlers

from rivermark.model.errors import StreamFailed
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.platform.conftest import FakeRuntime

pytestmark = pytest.mark.platform

Live = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def live(defs: dg.Definitions, instance: dg.DagsterInstance) -> Live:
    def start(**tags: str) -> dg.ExecuteInProcessResult:
        job = defs.resolve_job_def("taxi_live")
        return job.execute_in_process(instance=instance, tags=tags, raise_on_error=False)

    return start


def the_run(instance: dg.DagsterInstance) -> dg.DagsterRun:
    (run,) = instance.get_runs()
    return run


def events(
    instance: dg.DagsterInstance, table: str, kind: dg.DagsterEventType
) -> list[tuple[str | None, dict[str, Any]]]:
    """Partition and metadata of what was logged about a table, oldest first."""
    fetch = (
        instance.fetch_materializations
        if kind is dg.DagsterEventType.ASSET_MATERIALIZATION
        else instance.fetch_observations
    )
    records = fetch(dg.AssetKey(table.split("/")), limit=100, ascending=True).records
    found = []
    for record in records:
        event = record.asset_materialization or record.event_log_entry.asset_observation
        assert event is not None
        found.append((event.partition, {k: v.value for k, v in event.metadata.items()}))
    return found


MATERIALIZED = dg.DagsterEventType.ASSET_MATERIALIZATION
OBSERVED = dg.DagsterEventType.ASSET_OBSERVATION


def test_a_live_run_hosts_all_streams_of_its_group_and_is_wished_for(
    live: Live, runtime: FakeRuntime, settings: Settings
) -> None:
    # Dagster gives SIGTERM the handler of SIGINT, once a process.
    setup_interrupt_handlers()
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    assert live(user="ada").success

    (hosted,) = runtime.hosted
    assert hosted == ("continuous", ("taxi/rides", "taxi/hourly", "taxi/daily", "taxi/local"))
    wish = DesiredStore(settings.state).get("taxi")
    assert (wish.state, wish.by) == ("run", "ada")
    # The handlers of the process are put back.
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == before


def test_b076_tables_are_told_of_while_the_run_goes_on(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    seen: list[int] = []
    runtime.before_end = lambda _: seen.append(len(events(instance, "taxi/rides", MATERIALIZED)))

    live()

    assert seen == [1], "the event was there before the run had ended"
    ((_, told),) = events(instance, "taxi/rides", MATERIALIZED)
    assert told["rows_in"] == 10
    assert told["mode"] == "continuous"
    assert told["watermark"] == datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
    assert events(instance, "ops/stream_progress/taxi", MATERIALIZED)


def test_a_table_that_got_no_rows_is_seen_alive_and_wakes_nobody(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    runtime.rows = runtime.late = 0

    live()

    assert events(instance, "taxi/rides", MATERIALIZED) == []
    assert len(events(instance, "taxi/rides", OBSERVED)) == 1
    assert events(instance, "taxi/rides_late", OBSERVED) == []


def test_a_day_that_is_over_is_materialized_as_a_partition(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    runtime.closed = (date(2026, 3, 1), date(2026, 3, 2))

    live()

    partitions = [partition for partition, _ in events(instance, "taxi/hourly", MATERIALIZED)]
    assert partitions == [None, "2026-03-01", "2026-03-02"]
    # This table begins a day later: a day before its first is none of its days.
    partitions = [partition for partition, _ in events(instance, "taxi/daily", MATERIALIZED)]
    assert partitions == [None, "2026-03-02"]
    key = dg.AssetKey(["taxi", "hourly"])
    assert instance.get_materialized_partitions(key) == {"2026-03-01", "2026-03-02"}


def test_the_run_holds_no_event_once_it_is_stored(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    """Streams run for months; Dagster keeps what a step logs until the step ends."""
    result = live()

    in_memory = [e.asset_key for e in result.get_asset_materialization_events()]
    assert dg.AssetKey(["taxi", "rides"]) not in in_memory
    assert events(instance, "taxi/rides", MATERIALIZED)


def test_a_run_that_was_started_from_a_page_gets_the_tags_of_a_stream(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(["taxi", "rides"])],
        run_config={"ops": {"taxi_streams": {"config": {"mode": "continuous"}}}},
    )

    tags = the_run(instance).tags
    assert tags["rivermark/group"] == "taxi"
    assert tags["rivermark/mode"] == "continuous"
    assert tags["dagster/max_runtime"] == "0"


def test_b072_a_cancelled_run_drains_and_lets_its_group_rest(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    stopped: list[bool] = []

    def terminate(stop: Any) -> None:
        instance.report_run_canceling(the_run(instance))
        os.kill(os.getpid(), signal.SIGINT)
        stopped.append(stop.wait(5))

    runtime.before_end = terminate
    live(user="ada")

    assert stopped == [True], "the streams were asked to stop, and not broken off"
    run = the_run(instance)
    assert run.status is dg.DagsterRunStatus.CANCELED
    wish = DesiredStore(settings.state).get("taxi")
    assert (wish.state, wish.reason) == ("paused", f"run {run.run_id} was cancelled")


def test_a_cancelled_run_is_cancelled_also_where_one_of_its_streams_had_failed(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    def terminate(stop: Any) -> None:
        instance.report_run_canceling(the_run(instance))
        os.kill(os.getpid(), signal.SIGINT)
        stop.wait(5)

    runtime.before_end = terminate
    runtime.error = StreamFailed("taxi/hourly", "no space left on device")
    live(user="ada")

    assert the_run(instance).status is dg.DagsterRunStatus.CANCELED
    assert DesiredStore(settings.state).get("taxi").state == "paused"


def test_a_failed_stream_shows_its_error_on_its_table_while_the_others_go_on(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    runtime.failed = "taxi/hourly"

    live()

    ((_, metadata),) = events(instance, "taxi/hourly", MATERIALIZED)
    assert metadata["error"] == "no space left on device"
    ((_, metadata),) = events(instance, "taxi/rides", MATERIALIZED)
    assert "error" not in metadata


def test_a_machine_that_goes_down_does_not_pause_its_streams(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    runtime.before_end = lambda _: os.kill(os.getpid(), signal.SIGTERM)

    live()

    assert the_run(instance).status is dg.DagsterRunStatus.FAILURE
    assert DesiredStore(settings.state).get("taxi").state == "run"


def test_a_group_that_somebody_lets_rest_stops_and_the_run_succeeds(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    stopped: list[bool] = []

    def pause(stop: Any) -> None:
        DesiredStore(settings.state).set("taxi", "paused", by="ben", reason="maintenance")
        stopped.append(stop.wait(10))

    runtime.before_end = pause
    began = time.monotonic()
    live()

    assert stopped == [True]
    assert time.monotonic() - began < 10
    assert the_run(instance).status is dg.DagsterRunStatus.SUCCESS
    assert DesiredStore(settings.state).get("taxi").reason == "maintenance"


def test_a_run_of_the_sensor_that_comes_after_a_pause_does_not_overrule_it(
    live: Live, runtime: FakeRuntime, settings: Settings
) -> None:
    DesiredStore(settings.state).set("taxi", "paused", by="ben", reason="maintenance")
    runtime.before_end = lambda stop: stop.wait(10)

    live(**{"rivermark/incarnation": "3"})

    assert DesiredStore(settings.state).get("taxi").state == "paused"


def test_a_stream_that_fails_fails_the_run_and_leaves_the_wish_to_run(
    live: Live, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    runtime.error = StreamFailed("taxi/hourly", "no space left on device")

    live()

    assert the_run(instance).status is dg.DagsterRunStatus.FAILURE
    assert DesiredStore(settings.state).get("taxi").state == "run"
