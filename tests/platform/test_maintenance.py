"""The nightly upkeep: numbers at each table, the promise proven, and a bounded event log."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.dagster.jobs.event_log import prune_events
from rivermark.dagster.jobs.names import table_key
from rivermark.lake.log import CommitLog
from rivermark.lake.schema import create_table
from rivermark.monitor.checks.registry import versions_readable
from rivermark.settings import Settings
from tests.platform.conftest import failure
from tests.platform.small_topology import HOURLY, RIDES

pytestmark = pytest.mark.platform

TABLE = HOURLY.tables[0]


def written(settings: Settings, commits: int) -> None:
    """The hourly table after so many small commits."""
    lake = settings.lake()
    create_table(lake, TABLE)
    found = DeltaTable(lake.path(TABLE))
    schema = pa.schema(found.schema().to_arrow())
    row = pa.table({f.name: pa.nulls(1, f.type) for f in schema}, schema=schema)
    for _ in range(commits):
        write_deltalake(found, row, mode="append")


def run_upkeep(
    defs: dg.Definitions, instance: dg.DagsterInstance, **config: object
) -> dg.ExecuteInProcessResult:
    return defs.resolve_job_def("upkeep").execute_in_process(
        instance=instance,
        run_config={"ops": {"look_after_tables": {"config": config}}},
        raise_on_error=False,
    )


def test_upkeep_tells_files_before_and_after_and_reads_the_oldest_promised_version(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    written(settings, 20)

    assert run_upkeep(defs, instance).success

    [told] = instance.fetch_observations(table_key(TABLE), limit=10).records
    assert told.asset_observation is not None
    numbers = {k: v.value for k, v in told.asset_observation.metadata.items()}
    assert (numbers["joined_files"], numbers["live_files"]) == (20, 1)
    assert (numbers["files_before"], numbers["files_after"]) == (20, 21)
    assert int(str(numbers["bytes_after"])) > int(str(numbers["bytes_before"])) > 0
    key = dg.AssetCheckKey(table_key(TABLE), "versions_are_readable")
    found = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert found[0].event is not None
    evaluation = found[0].event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
    assert evaluation.passed


def test_a_dry_run_writes_nothing(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    written(settings, 20)

    assert run_upkeep(defs, instance, dry_run=True, tables=[TABLE.name]).success

    assert CommitLog(settings.lake().path(TABLE)).versions()[-1] == 20


def test_n063_a_run_over_some_tables_takes_no_age_of_reports(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    result = run_upkeep(defs, instance, tables=[TABLE.name], events_days=3.0)

    assert "events_days goes with all tables" in failure(result)


def test_n056_a_table_that_cannot_be_looked_after_is_told_and_the_others_are(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    """It is the first of the list."""
    written(settings, 20)
    create_table(settings.lake(), RIDES.raw)
    entry = Path(settings.lake().path(RIDES.raw)) / "_delta_log" / f"{0:020}.json"
    entry.write_text("")

    result = run_upkeep(defs, instance)

    assert not result.success
    assert f"{RIDES.raw.name}: not maintained: " in failure(result)
    [told] = instance.fetch_observations(table_key(TABLE), limit=10).records
    assert told.asset_observation is not None
    assert told.asset_observation.metadata["joined_files"].value == 20


def test_a_table_that_nobody_knows_is_refused(
    defs: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    result = run_upkeep(defs, instance, tables=["taxi/nothing"])

    assert not result.success
    assert "no table is named 'taxi/nothing'" in str(result.all_events)


def test_a_promise_that_somebody_broke_fails_the_run_and_the_check(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    written(settings, 20)
    next(Path(settings.lake().path(TABLE)).glob("*.parquet")).unlink()

    answer = versions_readable(settings, TABLE, datetime.now(UTC) + timedelta(days=8))
    assert not answer.passed
    result = run_upkeep(defs, instance)
    assert not result.success


def test_every_table_has_the_check_and_no_group_run_waits_for_it(defs: dg.Definitions) -> None:
    keys = defs.resolve_asset_graph().asset_check_keys
    for table in (*RIDES.tables, TABLE):
        assert dg.AssetCheckKey(table_key(table), "versions_are_readable") in keys
    assert defs.resolve_schedule_def("upkeep_nightly").job_name == "upkeep"


def test_old_reports_leave_the_event_log_and_days_and_the_latest_stay(tmp_path: Path) -> None:
    key = dg.AssetKey(["taxi", "hourly"])
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        @dg.op
        def reports(context: dg.OpExecutionContext) -> None:
            for n in range(40):
                context.log_event(dg.AssetMaterialization(key, metadata={"n": n}))
                context.log_event(dg.AssetObservation(key, metadata={"n": n}))
            context.log_event(dg.AssetMaterialization(key, partition="2026-03-01"))

        @dg.job
        def streaming() -> None:
            reports()

        run_id = streaming.execute_in_process(instance=instance).run_id
        assert prune_events(instance, older_than_days=1) == 0
        assert prune_events(instance, older_than_days=-1, dry_run=True) == 78

        assert prune_events(instance, older_than_days=-1) == 78

        left = instance.fetch_materializations(key, limit=100).records
        assert [r.partition_key for r in left] == ["2026-03-01", None]
        assert len(instance.fetch_observations(key, limit=100).records) == 1
        in_run = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        assert len(in_run) == 2
        assert instance.get_latest_materialization_event(key) is not None
        assert prune_events(instance, older_than_days=-1) == 0
