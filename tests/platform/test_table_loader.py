"""Assets of other people take closed days of tables, at the version that the days closed with."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import dagster as dg
import duckdb
import pandas
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.ask.lake_table import LakeTable
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.resources.spark import SparkResource
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, ORDERS, PAID, SHOP, START, append
from tests.platform.conftest import definitions_in, failure

polars = pytest.importorskip("polars")

pytestmark = pytest.mark.platform

TABLE = PAID.tables[0]
KEY = table_key(TABLE)
DAYS = dg.DailyPartitionsDefinition(FIRST.isoformat())
SECOND = FIRST + timedelta(days=1)
Load = Callable[..., dg.ExecuteInProcessResult]


@pytest.fixture
def closed(settings: Settings, instance: dg.DagsterInstance) -> int:
    """Three closed days, told to the instance at a version; more rows of the second came since."""
    rows = [{"order_id": n, "at": START + n * timedelta(hours=5)} for n in range(20)]
    append(settings, TABLE, rows)
    append(settings, ORDERS.admitted, rows)
    summary = StreamSummary(PAID.name, watermark=START + timedelta(days=3, hours=2))
    assert len(ClosedDays(settings.lake(), settings.state).newly_closed(PAID, summary)) == 3
    version = DeltaTable(settings.lake().path(TABLE)).version()
    job = definitions_in(SHOP, settings.home).resolve_job_def("report_days")
    assert job.execute_in_process(instance=instance).success
    append(settings, TABLE, [{"order_id": -1, "at": START + timedelta(days=1)}])
    return version


@pytest.fixture
def load(settings: Settings, instance: dg.DagsterInstance) -> Load:
    """Materialize an asset of the project's own that takes the table as such a type."""

    def run(
        kind: Any,
        day: date | None = SECOND,
        key: dg.AssetKey = KEY,
        partitions: dg.PartitionsDefinition | None = DAYS,
        **metadata: Any,
    ) -> dg.ExecuteInProcessResult:
        @dg.asset(
            ins={"rows": dg.AssetIn(key, metadata=metadata)},
            partitions_def=partitions if day else None,
            io_manager_key="mine",
        )
        def report(rows: kind) -> Any:
            return rows

        kept = dg.InMemoryIOManager()  # type: ignore[no-untyped-call]
        mine = dg.Definitions(assets=[report], resources={"mine": kept})
        defs = dg.Definitions.merge(mine, definitions_in(SHOP, settings.home))
        return defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey("report")],
            partition_key=day.isoformat() if day else None,
            raise_on_error=False,
        )

    return run


def ids(settings: Settings, version: int, day: date | None = SECOND) -> set[int]:
    """What the table holds of a day at a version, by delta-rs alone."""
    rows = DeltaTable(settings.lake().path(TABLE), version=version).to_pyarrow_table().to_pylist()
    return {row["order_id"] for row in rows if day is None or row["at"].date() == day}


@pytest.mark.parametrize(
    ("kind", "of"),
    [
        (pa.Table, lambda rows: rows["order_id"].to_pylist()),
        (polars.DataFrame, lambda rows: rows["order_id"].to_list()),
        (pandas.DataFrame, lambda rows: rows["order_id"].tolist()),
        (duckdb.DuckDBPyRelation, lambda rows: [n for (n,) in rows.select("order_id").fetchall()]),
        (LakeTable, lambda rows: rows.polars()["order_id"].to_list()),
        (Any, lambda rows: rows.arrow(["order_id"])["order_id"].to_pylist()),
    ],
)
def test_a_closed_day_comes_as_the_annotation_says_at_the_version_that_it_closed_with(
    load: Load, closed: int, settings: Settings, no_engine: None, kind: Any, of: Any
) -> None:
    result = load(kind)

    assert result.success
    rows = of(result.output_for_node("report"))
    assert len(rows) == len(set(rows))
    assert set(rows) == ids(settings, closed)
    assert -1 not in rows
    (loaded,) = [e for e in result.all_events if e.is_loaded_input]
    event: Any = loaded.event_specific_data
    assert event.metadata["version"].value == closed


def test_a_day_that_is_reported_again_is_taken_at_its_newer_version(
    load: Load, closed: int, settings: Settings, instance: dg.DagsterInstance
) -> None:
    instance.wipe_assets([KEY])
    job = definitions_in(SHOP, settings.home).resolve_job_def("report_days")
    assert job.execute_in_process(instance=instance).success

    rows = load(pa.Table).output_for_node("report")["order_id"].to_pylist()

    assert set(rows) == ids(settings, closed + 1)
    assert -1 in rows


def test_an_asset_without_days_takes_all_closed_ones_and_no_open_one(
    load: Load, closed: int, settings: Settings
) -> None:
    rows = load(pa.Table, None).output_for_node("report")["order_id"].to_pylist()

    ended = [FIRST + timedelta(days=n) for n in range(3)]
    assert set(rows) == set().union(*(ids(settings, closed, day) for day in ended))
    assert set(rows) < ids(settings, closed, None)


def test_a_day_that_is_not_closed_is_refused_in_one_sentence(load: Load, closed: int) -> None:
    told = failure(load(pa.Table, FIRST + timedelta(days=3)))

    assert (
        f"day {FIRST + timedelta(days=3)} of table 'shop/paid' is not closed: its stream has "
        f"finished the days through {FIRST + timedelta(days=2)}; let it run on, or start the job "
        "'shop_catch_up'"
    ) in told


def test_another_version_is_taken_where_it_is_asked_for(
    load: Load, closed: int, settings: Settings
) -> None:
    newest = load(pa.Table, version="newest").output_for_node("report")["order_id"].to_pylist()
    assert set(newest) == ids(settings, closed + 1)
    assert "version 99 of table 'shop/paid' is not available" in failure(load(pa.Table, version=99))


def test_a_version_whose_files_are_gone_is_refused_with_what_to_do(
    load: Load, closed: int, settings: Settings
) -> None:
    path = settings.lake().path(TABLE)
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(0, enforce_retention_duration=False, dry_run=False)

    told = failure(load(pa.Table))

    assert "its files have been deleted" in told
    assert 'dg.AssetIn(metadata={"version": "newest"})' in told
    assert load(pa.Table, version="newest").success


def test_a_table_without_days_is_taken_whole(load: Load, closed: int, settings: Settings) -> None:
    result = load(pa.Table, None, table_key(ORDERS.admitted))

    assert result.output_for_node("report").num_rows == 20


def test_what_is_no_table_and_what_no_type_is_are_refused(load: Load, closed: int) -> None:
    assert "table 'shop/paid' cannot be loaded as builtins.dict; there are" in failure(load(dict))


def test_no_asset_of_a_project_can_write_a_table(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    @dg.asset(io_manager_key="rivermark_tables")
    def report() -> int:
        return 1

    defs = dg.Definitions.merge(
        dg.Definitions(assets=[report]), definitions_in(SHOP, settings.home)
    )
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance, asset_selection=[dg.AssetKey("report")], raise_on_error=False
    )

    assert "give this asset another io_manager_key" in failure(result)


def test_a_program_loads_a_day_without_a_run(
    closed: int, settings: Settings, instance: dg.DagsterInstance
) -> None:
    rows: Any = definitions_in(SHOP, settings.home).load_asset_value(
        KEY, python_type=pa.Table, instance=instance, partition_key=SECOND.isoformat()
    )

    assert {*rows["order_id"].to_pylist()} == ids(settings, closed)


def test_the_engine_starts_for_a_frame_of_spark_alone(
    load: Load, closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import DataFrame

    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: "no engine"))

    told = failure(load(DataFrame))

    assert "'str' object has no attribute 'read'" in told
