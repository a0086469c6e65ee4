"""The nightly merge of late rows: started when there are any, shown at the tables and days."""

from pathlib import Path

import dagster as dg
import pytest

from rivermark.backfill.affected_days import Changed
from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.late.days import late_days
from rivermark.backfill.late.run import MergeReport
from rivermark.backfill.replace_changed import RecomputedTable
from rivermark.dagster.jobs.late_rows import evaluations_of, events_of
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.resources.spark import SparkResource
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, ORDERS, PAID, PAYMENTS, SHOP, sent, write, write_join
from tests.platform.conftest import definitions_in, failure, shown, tick

pytestmark = pytest.mark.platform


@pytest.fixture
def shop(tmp_path: Path) -> dg.Definitions:
    return definitions_in(SHOP, tmp_path)


def test_late_rows_are_merged_once_by_the_run_that_the_night_starts(
    shop: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, tmp_path: Path
) -> None:
    assert "no closed day" in str(tick(shop, instance, tmp_path, "merge_late_nightly").skip_message)
    landed = write(settings, PAYMENTS, sent(2))
    assert len(tick(shop, instance, tmp_path, "merge_late_nightly").run_requests or []) == 1

    result = shop.resolve_job_def("merge_late").execute_in_process(instance=instance)

    assert result.success
    told = shown(instance, PAYMENTS.admitted.name)
    assert (told["rows_folded"], told["days_folded"]) == (len(landed.late), 2)
    admitted, late, _ = landed.of(FIRST)
    assert f"| {FIRST} | {admitted:,} | {late} | 1,440 |" in str(told["days"])
    assert late_days(settings, PAYMENTS) == []
    assert "no closed day" in str(tick(shop, instance, tmp_path, "merge_late_nightly").skip_message)


def test_only_ingests_whose_rows_can_be_late_are_merged(
    shop: dg.Definitions, instance: dg.DagsterInstance
) -> None:
    result = shop.resolve_job_def("merge_late").execute_in_process(
        instance=instance,
        run_config={"ops": {"merge_late_rows": {"config": {"streams": ["shop/paid"]}}}},
        raise_on_error=False,
    )

    assert "no row of 'shop/paid' can be late; choose one of" in failure(result)


def test_a_day_that_differs_is_materialized_as_its_partition() -> None:
    table = RecomputedTable(PAID.tables[0].name, (FIRST,), Changed(days=frozenset({FIRST})))
    table.rows_before, table.rows_after = {FIRST: 10}, {FIRST: 12}

    (event,) = events_of(SHOP, MergeReport("m", downstream=DownstreamResult([table])))

    assert (event.asset_key, event.partition) == (table_key(PAID.tables[0]), str(FIRST))
    assert event.metadata["rows_before"].value == 10
    assert event.metadata["rows_after"].value == 12


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_check_of_a_day_that_was_computed_again_is_evaluated_again(
    shop: dg.Definitions, instance: dg.DagsterInstance, settings: Settings, again: bool
) -> None:
    write_join(settings, write(settings, ORDERS, sent(1)), write(settings, PAYMENTS, sent(1)))
    recomputed = [RecomputedTable(PAID.tables[0].name, (FIRST,))]
    report = MergeReport("m", downstream=DownstreamResult(recomputed))
    if again:
        assert shop.resolve_job_def("merge_late").execute_in_process(instance=instance).success

    (check,) = evaluations_of(settings, SHOP, report)

    assert (check.check_name, check.partition) == ("day_is_complete", str(FIRST))
    assert check.passed == again
    assert again or check.severity is dg.AssetCheckSeverity.WARN


def test_only_ingests_are_replayed(
    shop: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkResource, "spark_session", property(lambda _: "no engine"))
    result = shop.resolve_job_def("replay_ingest").execute_in_process(
        instance=instance,
        run_config={
            "ops": {"decide_again": {"config": {"stream": "shop/paid", "first": "2026-03-02"}}}
        },
        raise_on_error=False,
    )

    assert failure(result).splitlines()[0] == (
        "'shop/paid' reads tables and admits no rows; its days are recomputed by: "
        "rivermark reprocess shop/paid"
    )
