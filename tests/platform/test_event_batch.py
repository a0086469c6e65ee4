"""Events in batches, and how many of them a gap of years makes."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from deltalake import DeltaTable, write_deltalake

from rivermark.dagster.jobs.day_reports import AT_ONCE, LONGEST_GAP
from rivermark.dagster.jobs.event_batch import store_materializations
from rivermark.lake.schema import create_table
from rivermark.settings import Settings
from tests.platform.conftest import FakeRuntime
from tests.platform.small_topology import SMALL

pytestmark = pytest.mark.platform

HOURLY = dg.AssetKey(["taxi", "hourly"])
FIRST = date(2026, 3, 2)


@pytest.fixture
def on_disk(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance whose events lie in SQLite files, as those of `make ui` do."""
    (tmp_path / "dagster").mkdir()
    with dg.instance_for_test(temp_dir=str(tmp_path / "dagster")) as found:
        yield found


def day_events(days: int) -> list[dg.AssetMaterialization]:
    return [
        dg.AssetMaterialization(HOURLY, partition=str(FIRST + timedelta(days=n)))
        for n in range(days)
    ]


def test_a_batch_takes_a_few_transactions_however_many_events_it_has(
    on_disk: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    connect = SqliteEventLogStorage._connect

    def counted(self: SqliteEventLogStorage, shard: str) -> Any:
        opened.append(shard)
        return connect(self, shard)

    monkeypatch.setattr(SqliteEventLogStorage, "_connect", counted)

    store_materializations(on_disk, day_events(400))

    assert len(opened) <= 4
    known = on_disk.get_materialized_partitions(HOURLY)
    assert known == {event.partition for event in day_events(400)}
    latest = on_disk.get_latest_materialization_event(HOURLY)
    assert latest is not None
    assert latest.asset_materialization is not None
    assert latest.asset_materialization.partition == day_events(400)[-1].partition


def hourly_rows(settings: Settings, *days: date) -> None:
    """A row an hour of these days in the table taxi/hourly."""
    table = SMALL.table("taxi/hourly")
    create_table(settings.lake(), table)
    path = settings.lake().path(table)
    starts = [f"{day}T{hour:02}:00:00Z" for day in days for hour in range(24)]
    begun = pa.array(starts).cast(pa.timestamp("us", "UTC"))
    rows = {"window_start": begun, "window_end": begun, "rides": [1] * len(starts)}
    schema = DeltaTable(path).to_pyarrow_dataset().schema
    write_deltalake(path, pa.table(rows, schema), mode="append")


@pytest.fixture
def gap_of_years(runtime: FakeRuntime, settings: Settings) -> tuple[date, ...]:
    """A stream has rows of two days, and finishes all of the 2,523 between them at once."""
    days = tuple(FIRST + timedelta(days=n) for n in range(2_523))
    hourly_rows(settings, days[0], days[-1])
    runtime.closed = days
    return days


def test_a_gap_of_years_is_reported_by_the_days_that_have_rows(
    defs: dg.Definitions, on_disk: dg.DagsterInstance, gap_of_years: tuple[date, ...]
) -> None:
    """The three tables of the group got 7,569 events before, with the numbers of the whole."""
    result = defs.resolve_job_def("taxi_live").execute_in_process(instance=on_disk)

    assert result.success
    assert on_disk.get_materialized_partitions(HOURLY) == {
        str(gap_of_years[0]),
        str(gap_of_years[-1]),
    }
    records = on_disk.fetch_materializations(HOURLY, limit=10).records
    told = {r.partition_key: dict(r.asset_materialization.metadata) for r in records}  # type: ignore[union-attr]
    assert told[str(FIRST)]["dagster/partition_row_count"].value == 24
    assert "rows_in" not in told[str(FIRST)]
    assert told[None]["rows_in"].value == 10
    events = on_disk.event_log_storage.get_logs_for_run(result.run_id)
    assert len([e for e in events if e.dagster_event and e.dagster_event.asset_key]) < 20


def test_days_that_are_empty_between_others_are_reported_as_empty(
    defs: dg.Definitions, on_disk: dg.DagsterInstance, runtime: FakeRuntime, settings: Settings
) -> None:
    days = [FIRST + timedelta(days=n) for n in range(LONGEST_GAP + 2)]
    hourly_rows(settings, days[0], days[-1])
    runtime.closed = tuple(days)

    assert defs.resolve_job_def("taxi_live").execute_in_process(instance=on_disk).success

    assert on_disk.get_materialized_partitions(HOURLY) == {str(day) for day in days}


def test_many_days_are_reported_a_part_at_a_time_so_that_the_run_beats_and_hears_between(
    defs: dg.Definitions,
    on_disk: dg.DagsterInstance,
    runtime: FakeRuntime,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = tuple(FIRST + timedelta(days=n) for n in range(2 * AT_ONCE))
    hourly_rows(settings, *days)
    batches: list[int] = []

    def store(instance: dg.DagsterInstance, events: Any, op: dg.OpExecutionContext) -> None:
        batches.append(len(events))
        store_materializations(instance, events, op)

    monkeypatch.setattr("rivermark.dagster.jobs.day_reports.store_materializations", store)
    runtime.closed = days
    assert defs.resolve_job_def("taxi_live").execute_in_process(instance=on_disk).success

    assert max(batches) == AT_ONCE
    assert on_disk.get_materialized_partitions(HOURLY) == {str(day) for day in days}
