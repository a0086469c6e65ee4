"""An asset of a project takes a closed day of a table as a data frame of Spark."""

from datetime import timedelta
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermark.dagster.declared import definitions_of
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.resources.settings import SettingsResource
from rivermark.dagster.resources.spark import SparkResource
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, PAID, SHOP, START, append

TABLE = PAID.tables[0]


@dg.asset(
    ins={"rows": dg.AssetIn(table_key(TABLE))},
    partitions_def=dg.DailyPartitionsDefinition(str(FIRST)),
)
def orders(context: dg.AssetExecutionContext, rows: DataFrame) -> None:
    found = sorted(row.order_id for row in rows.collect())
    context.add_output_metadata({"orders": dg.MetadataValue.json(found)})


def test_a_closed_day_is_a_frame_of_the_version_that_it_closed_with(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is that of these tests; a run starts one of its own."""
    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: spark))
    append(
        settings,
        TABLE,
        [{"order_id": n, "at": START + n * timedelta(hours=5)} for n in range(20)],
    )
    summary = StreamSummary(PAID.name, watermark=START + timedelta(days=3, hours=2))
    ClosedDays(settings.lake(), settings.state).newly_closed(PAID, summary)
    platform = SettingsResource(overrides={"home": str(settings.home)})
    defs = dg.Definitions.merge(dg.Definitions(assets=[orders]), definitions_of(SHOP, platform))

    with dg.DagsterInstance.ephemeral() as instance:
        defs.resolve_job_def("report_days").execute_in_process(instance=instance)
        append(settings, TABLE, [{"order_id": -1, "at": START + timedelta(days=1)}])
        run = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance,
            asset_selection=[dg.AssetKey("orders")],
            partition_key=str(FIRST + timedelta(days=1)),
        )

    (made,) = run.asset_materializations_for_node("orders")
    found: Any = made.metadata["orders"].value
    assert found == [5, 6, 7, 8, 9]
