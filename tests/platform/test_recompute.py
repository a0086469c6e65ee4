"""Backfills: days computed again."""

from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import pytest

from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.suites import DAY_SUITE_CHECK
from rivermark.lake.schema import create_table
from rivermark.model.errors import PartitionStillOpen
from rivermark.monitor.completeness.checks import DAY_COMPLETE
from rivermark.settings import Settings
from tests.platform.conftest import FakeRuntime, failure, shown
from tests.platform.small_topology import SMALL

pytestmark = pytest.mark.platform


def backfill(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    table: str = "taxi/hourly",
    *,
    first: str = "2026-03-02",
    last: str = "2026-03-02",
    config: dict[str, Any] | None = None,
    raise_on_error: bool = True,
) -> dg.ExecuteInProcessResult:
    """The run that a single-run backfill makes of a range of days."""
    return defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(table.split("/"))],
        tags={
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        },
        run_config={"ops": {"taxi_days": {"config": config}}} if config else None,
        raise_on_error=raise_on_error,
    )


def test_a_range_of_days_is_one_run_and_one_recompute(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    backfill(defs, instance, last="2026-03-05")

    assert runtime.recomputed == [("taxi/hourly", date(2026, 3, 2), date(2026, 3, 5), None)]
    key = dg.AssetKey(["taxi", "hourly"])
    assert instance.get_materialized_partitions(key) == {
        "2026-03-02",
        "2026-03-03",
        "2026-03-04",
        "2026-03-05",
    }


def test_b075_the_days_of_a_range_have_their_results_again_when_it_is_done(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    settings: Settings,
) -> None:
    table = SMALL.table("taxi/hourly")
    create_table(settings.lake(), table)

    # The suite of the whole table needs a Spark session, and is not asked here.
    backfill(defs, instance, last="2026-03-05", raise_on_error=False)

    days = {f"2026-03-0{n}" for n in (2, 3, 4, 5)}
    for check in (DAY_SUITE_CHECK, DAY_COMPLETE):
        key = dg.AssetCheckKey(table_key(table), check)
        infos = instance.event_log_storage.get_asset_check_partition_info([key])
        # The check of the whole range, in the same run, has a result without a day.
        of_days = [info for info in infos if info.partition_key is not None]
        assert {info.partition_key for info in of_days} == days
        for info in of_days:
            written = info.latest_materialization_storage_id
            assert written is not None
            assert info.latest_check_event_storage_id > written, "of the rows that are there now"


def test_every_daily_table_asks_for_one_run_a_range(defs: dg.Definitions) -> None:
    graph = defs.resolve_asset_graph()
    for name in ("hourly", "daily", "local"):
        policy = graph.get(dg.AssetKey(["taxi", name])).backfill_policy
        assert policy == dg.BackfillPolicy.single_run()


def test_one_day_alone_can_be_computed_again(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(["taxi", "local"])],
        partition_key="2026-03-08",
    )

    assert runtime.recomputed == [("taxi/local", date(2026, 3, 8), date(2026, 3, 8), None)]


def test_a_recompute_tells_what_changed_and_what_was_read(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    backfill(defs, instance)

    told = shown(instance, "taxi/hourly")
    assert (told["rows_before"], told["rows_after"]) == (90, 100)
    assert (told["rows_added"], told["rows_removed"], told["rows_changed"]) == (14, 4, 0)
    assert "| 2026-03-02 | 14 | 4 | 0 | 86 |" in str(told["days"])
    assert told["read"] == "taxi/rides at 7"
    assert told["version"] == 3


@pytest.mark.parametrize(
    ("as_of", "pinned"),
    [
        ("2026-03-02 12:00", datetime(2026, 3, 2, 12, tzinfo=UTC)),
        ('{"taxi/rides": 17}', {"taxi/rides": 17}),
    ],
)
def test_the_inputs_can_be_pinned(
    defs: dg.Definitions,
    instance: dg.DagsterInstance,
    runtime: FakeRuntime,
    as_of: str,
    pinned: object,
) -> None:
    backfill(defs, instance, config={"as_of": as_of})

    assert runtime.recomputed[0][3] == pinned


@pytest.mark.parametrize("as_of", ["yesterday", '{"../rides": 1}', '{"taxi/ridez": 1}'])
def test_what_pins_nothing_is_refused(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime, as_of: str
) -> None:
    result = backfill(defs, instance, config={"as_of": as_of}, raise_on_error=False)

    assert not result.success
    assert runtime.recomputed == []


def test_a_day_that_is_still_open_fails_with_what_to_do(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    runtime.error = PartitionStillOpen("2026-03-05 is still open. Recompute through 2026-03-04")

    result = backfill(defs, instance, last="2026-03-05", raise_on_error=False)

    assert "is still open" in failure(result).splitlines()[0]
    assert instance.get_materialized_partitions(dg.AssetKey(["taxi", "hourly"])) == set()


def test_daily_tables_without_days_are_refused_with_what_to_do(
    defs: dg.Definitions, instance: dg.DagsterInstance, runtime: FakeRuntime
) -> None:
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(["taxi", "hourly"])],
        raise_on_error=False,
    )

    assert not result.success
    assert runtime.recomputed == []
