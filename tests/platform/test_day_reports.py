"""Days that Dagster has lost, or never knew, are reported again without being computed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import dagster as dg
import pytest

from rivermark.dagster.jobs.metadata import DAY_ROW_COUNT
from rivermark.dagster.jobs.names import table_key
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, ORDERS, PAID, PAYMENTS, SHOP, START, sent, write, write_join
from tests.platform.conftest import definitions_in, failure

pytestmark = [pytest.mark.platform, pytest.mark.usefixtures("no_engine")]

KEY = table_key(PAID.tables[0])
DAYS = [str(FIRST + timedelta(days=n)) for n in range(3)]
Report = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def report(settings: Settings, instance: dg.DagsterInstance) -> Report:
    """The job, after three days were finished and reported to nobody who knows it."""
    write_join(settings, write(settings, ORDERS, sent(4)), write(settings, PAYMENTS, sent(4)))
    summary = StreamSummary(PAID.name, watermark=START + timedelta(days=3, hours=2))
    assert len(ClosedDays(settings.lake(), settings.state).newly_closed(PAID, summary)) == 3
    job = definitions_in(SHOP, settings.home).resolve_job_def("report_days")

    def run(**config: Any) -> dg.ExecuteInProcessResult:
        return job.execute_in_process(
            instance=instance,
            run_config={"ops": {"report_days_again": {"config": config}}},
            raise_on_error=False,
        )

    return run


def test_n071_finished_days_are_told_to_an_instance_that_does_not_know_them(
    report: Report, instance: dg.DagsterInstance
) -> None:
    assert report().success
    assert instance.get_materialized_partitions(KEY) == set(DAYS)

    instance.wipe_assets([KEY])
    assert instance.get_materialized_partitions(KEY) == set()
    assert report(tables=[PAID.tables[0].name], first=DAYS[1]).success
    assert instance.get_materialized_partitions(KEY) == set(DAYS[1:])
    before = len(partition_events(instance))
    assert report().success
    assert instance.get_materialized_partitions(KEY) == set(DAYS)
    assert len(partition_events(instance)) == before + 1, "what is known is not told again"


def partition_events(instance: dg.DagsterInstance) -> dict[str | None, int]:
    """What was told of the table's days, oldest first: how many rows each has."""
    records = instance.fetch_materializations(KEY, limit=10_000, ascending=True).records
    events = [record.asset_materialization for record in records]
    return {
        event.partition: event.metadata[DAY_ROW_COUNT].value  # type: ignore[misc]
        for event in events
        if event is not None and event.partition is not None
    }


def test_a_day_carries_its_own_rows(report: Report, instance: dg.DagsterInstance) -> None:
    """Each of the table's three finished days, and none of the day that has begun."""
    report()

    rows = partition_events(instance)
    assert list(rows) == DAYS
    assert sum(rows.values()) < 3 * 24 * 60
    assert all(n > 1300 for n in rows.values())


def test_an_unknown_table_and_an_odd_day_are_refused(report: Report) -> None:
    assert "no table by days is named 'shop/nothing'; there are: " in failure(
        report(tables=["shop/nothing"])
    )
    assert "day 0001-01-01 is out of range: expected 1900-01-01" in failure(
        report(first="0001-01-01")
    )
