"""Assets behind streams run when a day of what they read closes, and when it is corrected."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import rivermark.dagster
from assets.topology import TOPOLOGY
from rivermark.dagster.jobs.names import table_key
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, PAID, SHOP, START, append
from tests.platform.conftest import definitions_in

pytestmark = [pytest.mark.platform, pytest.mark.usefixtures("no_engine")]

KEY = table_key(PAID.tables[0])
DAYS = [str(FIRST + timedelta(days=n)) for n in range(3)]
COUNT, TOTAL, NEWEST = map(dg.AssetKey, ("count", "total", "newest"))


@dg.asset(
    ins={"rows": dg.AssetIn(KEY)},
    partitions_def=dg.DailyPartitionsDefinition(DAYS[0]),
    automation_condition=rivermark.dagster.day_closed(),
)
def count(context: dg.AssetExecutionContext, rows: pa.Table) -> None:
    context.add_output_metadata({"rows": rows.num_rows})


@dg.asset(
    ins={"rows": dg.AssetIn(KEY)},
    automation_condition=dg.AutomationCondition.any_deps_updated().since_last_handled()
    & ~dg.AutomationCondition.in_progress(),
)
def total(context: dg.AssetExecutionContext, rows: pa.Table) -> None:
    context.add_output_metadata({"rows": rows.num_rows})


@dg.asset(
    deps=[KEY],
    partitions_def=dg.DailyPartitionsDefinition(DAYS[0]),
    automation_condition=dg.AutomationCondition.eager(),
)
def newest() -> None: ...


def test_each_day_that_closes_and_each_that_is_corrected_is_asked_for(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    append(
        settings,
        PAID.tables[0],
        [{"order_id": n, "at": START + n * timedelta(hours=5)} for n in range(20)],
    )
    # Partitions begin with the first day of rows that a run has seen when the code is loaded.
    ClosedDays(settings.lake(), settings.state).note_first(PAID, FIRST)
    defs = dg.Definitions.merge(
        dg.Definitions(assets=[count, total, newest]), definitions_in(SHOP, settings.home)
    )
    cursor = None

    def asked_for() -> dict[str, object]:
        nonlocal cursor
        found = dg.evaluate_automation_conditions(
            defs,
            instance,
            asset_selection=dg.AssetSelection.assets(COUNT, TOTAL, NEWEST),
            cursor=cursor,
        )
        cursor = found.cursor
        # The newest day is of today, and open: what `day_closed` is for.
        assert found.get_num_requested(NEWEST) == 0
        days = set(found.get_requested_partitions(COUNT))
        return {"count": days, "total": found.get_num_requested(TOTAL)}

    def close_through(day: int) -> None:
        summary = StreamSummary(PAID.name, watermark=START + timedelta(days=day, hours=2))
        ClosedDays(settings.lake(), settings.state).newly_closed(PAID, summary)
        report = defs.resolve_job_def("report_days")
        assert report.execute_in_process(instance=instance).success

    def materialize(*days: str) -> list[object]:
        job = defs.resolve_implicit_global_asset_job_def()
        runs = [
            job.execute_in_process(instance=instance, asset_selection=[COUNT], partition_key=day)
            for day in days
        ]
        return [
            run.asset_materializations_for_node("count")[0].metadata["rows"].value for run in runs
        ]

    assert asked_for() == {"count": set(), "total": 0}

    close_through(2)
    assert asked_for() == {"count": set(DAYS[:2]), "total": 1}
    assert asked_for() == {"count": set(), "total": 0}
    assert materialize(*DAYS[:2]) == [5, 5]
    assert asked_for() == {"count": set(), "total": 0}

    close_through(3)
    assert asked_for() == {"count": {DAYS[2]}, "total": 1}
    assert materialize(DAYS[2]) == [5]
    assert asked_for() == {"count": set(), "total": 0}

    instance.report_runless_asset_event(dg.AssetMaterialization(KEY, partition=DAYS[0]))
    assert asked_for() == {"count": {DAYS[0]}, "total": 1}


def test_the_example_of_the_page_goes_with_the_streams_of_this_repository() -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "downstream-assets.md"
    declared: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(block, declared)  # noqa: S102 - a page of this repository
    best = declared["best_driver"]
    ours = rivermark.dagster.definitions(TOPOLOGY, parts=())

    defs = dg.Definitions.merge(dg.Definitions(assets=[best]), ours)

    dg.Definitions.validate_loadable(defs)
    (read,) = defs.resolve_asset_graph().get(dg.AssetKey("best_driver")).parent_keys
    node = defs.resolve_asset_graph().get(read)
    assert node.partitions_def is not None
    assert node.metadata["dagster/io_manager_key"] == "rivermark_tables"
