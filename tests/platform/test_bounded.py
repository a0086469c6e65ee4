"""Materialize: draining what is there."""

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rivermark.dagster.jobs.suites import SUITE_CHECK
from rivermark.model.errors import StreamAlreadyRunning, StreamFailed
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.platform.conftest import FakeRuntime, failure

pytestmark = pytest.mark.platform


def materialize(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    *assets: str,
    config: dict[str, Any] | None = None,
    raise_on_error: bool = True,
) -> dg.ExecuteInProcessResult:
    """What the button on the assets' page does: a run of the implicit job of all assets."""
    job = defs.resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(a.split("/")) for a in assets],
        run_config={"ops": {"taxi_streams": {"config": config}}} if config else None,
        raise_on_error=raise_on_error,
    )


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    return {
        e.asset_key.to_user_string(): e.step_materialization_data.materialization.metadata
        for e in result.get_asset_materialization_events()
        if e.asset_key
    }


def test_materializing_tables_drains_the_streams_that_write_them(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    result = materialize(defs, instance, "taxi/rides", "taxi/rides_late")

    assert runtime.hosted == [("bounded", ("taxi/rides",))]
    assert set(materialized(result)) == {"taxi/rides", "taxi/rides_late"}
    assert DesiredStore(settings.state).all() == {}, "a drain leaves the wish alone"


def test_tables_that_the_streams_filled_besides_are_told_of_too(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    materialize(defs, instance, "ops/stream_progress/taxi")

    for table in ("taxi/rides_raw", "taxi/rides", "taxi/rides_late", "taxi/hourly"):
        found = instance.get_latest_materialization_event(dg.AssetKey(table.split("/")))
        assert found is not None, table
    # Nothing was set aside, so there is nothing new to tell of that table.
    untouched = dg.AssetKey(["taxi", "rides_quarantine"])
    assert instance.get_latest_materialization_event(untouched) is None


@pytest.mark.parametrize(
    ("config", "hosted"),
    [
        (None, ("taxi/rides", "taxi/hourly", "taxi/daily", "taxi/local")),
        ({"streams": ["taxi/hourly", "taxi/rides"]}, ("taxi/rides", "taxi/hourly")),
    ],
)
def test_materializing_the_group_drains_all_of_its_streams_or_those_named(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    config: dict[str, Any] | None,
    hosted: tuple[str, ...],
) -> None:
    materialize(defs, instance, "ops/stream_progress/taxi", config=config)

    assert runtime.hosted == [("bounded", hosted)]


def test_a_table_shows_the_numbers_of_its_stream(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    told = materialized(materialize(defs, instance, "taxi/rides"))["taxi/rides"]

    assert told["rows_in"].value == 10
    assert told["late"].value == 1
    assert told["mode"].value == "bounded"
    assert told["dagster/row_count"].value == 0  # Nothing was written: the runtime pretends.
    assert "watermark" in told


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"streams": ["taxi/rides", "taxi/ridez"]}, "no stream 'taxi/ridez'; it has: taxi/daily,"),
        ({"streams": ["watch/alerts"]}, "group 'taxi' has no stream 'watch/alerts'"),
        ({"streams": ["../../etc/passwd"]}, "has no stream '../../etc/passwd'"),
        ({"report_seconds": -1.0}, "cannot report every -1.0 seconds: give 5 or more"),
        ({"trigger_seconds": -2.0}, "-2.0 seconds long: give more than 0"),
        ({"check_seconds": 1.0}, "would crowd out the streams: 30 or more"),
        ({"suite_seconds": 5.0}, "give 60 or more, or 0 for never"),
        ({"report_seconds": float("nan")}, "cannot report every nan seconds"),
        ({"report_seconds": 30.0}, "report_seconds goes with mode continuous: leave it out"),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_to_do(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    config: dict[str, Any],
    told: str,
) -> None:
    result = materialize(
        defs, instance, "ops/stream_progress/taxi", config=config, raise_on_error=False
    )

    assert not result.success
    assert told in failure(result)
    assert runtime.hosted == []


@pytest.mark.parametrize(
    "config", [{"mode": "sometimes"}, {"stream": []}, {"streams": "taxi/rides"}]
)
def test_a_configuration_of_the_wrong_shape_is_refused_before_a_run_is_made(
    defs: dg.Definitions, instance: dg.DagsterInstance, config: dict[str, Any]
) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError):
        materialize(defs, instance, "taxi/rides", config=config)


def test_the_trigger_of_a_run_is_its_own(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    materialize(defs, instance, "taxi/rides", config={"trigger_seconds": 7.5})

    assert runtime.settings[0].trigger_seconds == 7.5


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(
            StreamAlreadyRunning("stream 'taxi/rides' is already run by run abc (pid 7)"),
            "stream 'taxi/rides' is already run by run abc (pid 7)",
            id="b019 a stream that runs elsewhere, with the other's name",
        ),
        pytest.param(
            StreamFailed("taxi/rides", "the Spark session is gone: its JVM has ended"),
            "stream 'taxi/rides' failed: the Spark session is gone: its JVM has ended",
            id="b077 a query that dies, with its own error",
        ),
    ],
)
def test_b019_b077_a_run_fails_with_its_streams_own_error_first(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    error: Exception,
    told: str,
) -> None:
    runtime.error = error

    result = materialize(defs, instance, "taxi/rides", raise_on_error=False)

    assert not result.success
    assert failure(result).startswith(told)


def test_tables_of_the_streams_that_did_not_fail_are_materialized(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    runtime.failed = "taxi/hourly"
    runtime.error = StreamFailed("taxi/hourly", "no space left on device")

    result = materialize(defs, instance, "taxi/rides", "taxi/hourly", raise_on_error=False)

    assert failure(result).startswith("stream 'taxi/hourly' failed: no space left on device")
    assert set(materialized(result)) == {"taxi/rides"}


def test_catching_up_drains_first_and_asks_the_lake_after(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, tmp_path: Path
) -> None:
    result = defs.resolve_job_def("taxi_catch_up").execute_in_process(instance=instance)

    order = [e.step_key for e in result.all_events if e.is_step_success]
    assert order == ["taxi_streams", "taxi_claims", "taxi_suites"]
    claims = {
        (e.asset_key.to_user_string(), e.check_name): e.passed
        for e in result.get_asset_check_evaluations()
        # The runtime is a stand-in, which makes no table to look at.
        if e.check_name != SUITE_CHECK
    }
    assert ("taxi/rides", "every_row_is_accounted_for") in claims
    assert ("taxi/hourly", "rows_are_unique") in claims
    assert ("taxi/hourly", "no_row_is_late_downstream") in claims
    assert all(claims.values())
