"""What the console did, and what an instance never knew or lost, is reported by the sensor."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rivermark import Table
from rivermark.dagster.jobs.names import GROUP_TAG, progress_key, table_key
from rivermark.dagster.jobs.table_reports import TableReporter
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import TableDamaged
from rivermark.monitor.checks.history import evaluate_all, record
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.monitor.dashboard.refresh import checks_to_evaluate
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings
from tests.oracles.shop import (
    FIRST,
    ORDERS,
    PAID,
    PAYMENTS,
    SHOP,
    START,
    decide,
    sent,
    write,
    write_join,
)
from tests.platform.conftest import definitions_in

pytestmark = [pytest.mark.platform, pytest.mark.usefixtures("no_engine")]

KEY = table_key(PAID.tables[0])
DAYS = {str(FIRST + timedelta(days=n)) for n in range(3)}
Tick = Callable[[str | None], str]


@pytest.fixture
def tick(settings: Settings, instance: dg.DagsterInstance) -> Tick:
    """A tick of the sensor after a console run of four days; returns the cursor."""
    write_join(settings, write(settings, ORDERS, sent(4)), write(settings, PAYMENTS, sent(4)))
    summary = StreamSummary(PAID.name, watermark=START + timedelta(days=3, hours=2))
    assert len(ClosedDays(settings.lake(), settings.state).newly_closed(PAID, summary)) == 3
    defs = definitions_in(SHOP, settings.home)
    sensor = defs.resolve_sensor_def("report_tables")

    def evaluate(cursor: str | None) -> str:
        with dg.build_sensor_context(
            instance=instance,
            cursor=cursor,
            definitions=defs,
            sensor_name="report_tables",
            resources={
                "rivermark_settings": SettingsResource(overrides={"home": str(settings.home)})
            },
        ) as context:
            found = sensor.evaluate_tick(context)
        for event in found.asset_events:
            instance.report_runless_asset_event(event)
        assert found.cursor is not None
        return found.cursor

    return evaluate


def events(instance: dg.DagsterInstance, key: dg.AssetKey) -> list[str | None]:
    """Partitions that were reported, None for the table itself."""
    records = instance.fetch_materializations(key, limit=100, ascending=True).records
    return [record.partition_key for record in records]


def test_the_first_tick_reports_rows_and_days_that_no_run_reported(
    tick: Tick, instance: dg.DagsterInstance
) -> None:
    tick(None)

    assert instance.get_materialized_partitions(KEY) == DAYS
    assert events(instance, table_key(ORDERS.admitted)) == [None]
    latest = instance.get_latest_materialization_event(table_key(ORDERS.admitted))
    assert latest is not None
    assert latest.asset_materialization is not None
    shown = latest.asset_materialization.metadata
    assert shown["mode"].value == "outside of Dagster"
    assert shown["dagster/row_count"].value == len(decide(sent(4)).admitted)
    assert events(instance, progress_key("shop")) == [None]


def test_what_is_known_is_not_reported_again(tick: Tick, instance: dg.DagsterInstance) -> None:
    cursor = tick(None)
    before = {key: events(instance, key) for key in instance.get_asset_keys()}

    assert tick(cursor) == cursor
    tick(None)

    assert {key: events(instance, key) for key in instance.get_asset_keys()} == before


def test_another_instance_is_told_all_that_the_first_one_knows(
    tick: Tick, settings: Settings, tmp_path: Path
) -> None:
    """What was reported is kept by each instance, and not beside the tables."""
    tick(None)
    with dg.DagsterInstance.ephemeral(str(tmp_path)) as other:
        assert other.get_materialized_partitions(KEY) == set()

        reporter = TableReporter(other, settings, SHOP, hosted=(), seen={})
        reporter.report()

        assert other.get_materialized_partitions(KEY) == DAYS
        assert events(other, table_key(ORDERS.admitted)) == [None]


def test_an_asset_that_was_wiped_is_reported_again(
    tick: Tick, instance: dg.DagsterInstance
) -> None:
    cursor = tick(None)
    instance.wipe_assets([KEY])

    tick(cursor)

    assert instance.get_materialized_partitions(KEY) == DAYS


def test_new_rows_of_the_console_are_reported_once(
    tick: Tick, instance: dg.DagsterInstance, settings: Settings
) -> None:
    cursor = tick(None)
    write(settings, ORDERS, sent(1))

    tick(tick(cursor))

    assert events(instance, table_key(ORDERS.admitted)) == [None, None]


def test_a_tick_reports_a_bounded_part_and_the_next_one_goes_on(
    tick: Tick, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.dagster.jobs.table_reports.AT_ONCE", 8)
    cursor = tick(None)
    assert len(instance.get_materialized_partitions(KEY)) < 3

    for _ in range(4):
        cursor = tick(cursor)

    assert all(
        instance.get_materialized_partitions(table_key(table)) == DAYS for table in PAID.tables
    )


def test_a_table_that_cannot_be_read_keeps_no_other_from_being_reported(
    tick: Tick, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(lake: Lake, table: Table) -> int:
        if table.name == ORDERS.name:
            raise TableDamaged(f"the log of {table.name} is cut")
        return row_count(lake, table)

    monkeypatch.setattr("rivermark.dagster.jobs.table_reports.row_count", damaged)

    cursor = tick(None)

    assert events(instance, table_key(ORDERS.admitted)) == []
    assert events(instance, table_key(PAYMENTS.admitted)) == [None]
    assert f'"{ORDERS.name}":' not in cursor, "it is compared again"
    assert f'"{PAYMENTS.name}":' in cursor


def test_a_group_that_a_run_hosts_is_left_to_it_but_for_tables_never_reported(
    tick: Tick, instance: dg.DagsterInstance, settings: Settings
) -> None:
    job = definitions_in(SHOP, settings.home).resolve_job_def("shop_live")
    instance.create_run_for_job(
        job_def=job, status=dg.DagsterRunStatus.STARTED, tags={GROUP_TAG: "shop"}
    )

    cursor = tick(None)
    write(settings, ORDERS, sent(1))
    tick(cursor)

    assert instance.get_materialized_partitions(KEY) == set()
    assert events(instance, table_key(ORDERS.admitted)) == [None]


def test_results_of_checks_that_the_console_evaluated_are_reported_once(
    tick: Tick, settings: Settings, instance: dg.DagsterInstance
) -> None:
    """After a demo, whose pages would say "Not evaluated" of what the console says holds."""
    now = datetime.now(UTC)
    checks = checks_to_evaluate(settings, SHOP)
    record(settings, [e.recorded(now) for e in evaluate_all(settings, checks, now)])
    keys = [dg.AssetCheckKey(table_key(check.table), check.name) for check in checks]

    cursor = tick(None)
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert set(latest) == set(keys)
    assert tick(cursor) is not None
    again = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert {k: e.id for k, e in again.items()} == {k: e.id for k, e in latest.items()}


def test_what_a_run_of_dagster_found_of_days_is_not_reported_over(
    tick: Tick, settings: Settings, instance: dg.DagsterInstance
) -> None:
    """The run that drew the dashboard has reported them, each with its evidence."""
    cursor = tick(None)
    definitions_in(SHOP, settings.home).resolve_job_def("dashboard").execute_in_process(
        instance=instance
    )
    keys = [
        dg.AssetCheckKey(table_key(check.table), check.name)
        for stream in SHOP.streams
        for check in completeness_checks(SHOP, stream)
    ]
    of_run = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)

    tick(cursor)

    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert {k: e.id for k, e in latest.items()} == {k: e.id for k, e in of_run.items()}
    assert len(latest) == len(keys) > 0
