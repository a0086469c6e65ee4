"""Three days with 2 % late rows and a source that is silent for three hours, seen by the checks."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rivermark import Suite, Topology, expect
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.suites import DAY_SUITE_CHECK, days_to_evaluate
from rivermark.quality.suites import suites_of
from rivermark.settings import Settings
from tests.oracles.shop import (
    FIRST,
    HOUR,
    ORDERS,
    PAID,
    PAYMENTS,
    SECRET,
    SHOP,
    START,
    sent,
    write,
    write_join,
)
from tests.platform.conftest import definitions_in, failure, note_rows_since_the_first_day, tick

pytestmark = pytest.mark.platform

SECOND = FIRST + timedelta(days=1)
THIRD = FIRST + timedelta(days=2)
OUTAGE = [START + timedelta(days=1) + n * HOUR for n in (9, 10, 11)]
PAID_DAY = dg.AssetCheckKey(dg.AssetKey(["shop", "paid"]), "day_is_complete")


def status(info: Any) -> str:
    return str(info.latest_execution_status.value)


def evidence(told: dg.AssetCheckEvaluation) -> dict[str, Any]:
    table = told.metadata["offenders"]
    assert isinstance(table, dg.TableMetadataValue)
    return {str(record.data["day"]): record.data for record in table.records}


@pytest.mark.usefixtures("no_engine")
def test_each_day_warns_or_fails_with_the_numbers_of_the_oracle(
    tmp_path: Path, instance: dg.DagsterInstance, settings: Settings
) -> None:
    orders = write(settings, ORDERS, sent(3))
    payments = write(settings, PAYMENTS, sent(3, late_from=11, silent=OUTAGE))
    write_join(settings, orders, payments)
    defs = definitions_in(SHOP, tmp_path)

    result = defs.resolve_job_def("dashboard").execute_in_process(instance=instance)

    assert result.success
    told = {
        (e.asset_key.to_user_string(), e.check_name, e.partition): e
        for e in (
            event.asset_check_evaluation_data
            for event in result.all_events
            if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
        )
    }
    # The source that was silent fails, with what it had announced; the other only warns.
    failed = told["shop/payments", "days_are_complete", None]
    assert not failed.passed
    assert failed.severity is dg.AssetCheckSeverity.ERROR
    assert failed.metadata["rows_short"].value == len(payments.lost) == 180
    assert failed.metadata["hours_missing"].value == 3
    assert failed.metadata["rows_late"].value == sum(
        payments.of(d)[1] for d in (FIRST, SECOND, THIRD)
    )
    days = evidence(failed)
    assert days["2026-03-03"]["state"] == "fail"
    assert days["2026-03-03"]["missing_hours_utc"] == "09, 10, 11"
    assert days["2026-03-02"]["state"] == days["2026-03-04"]["state"] == "warn"
    warned = told["shop/orders", "days_are_complete", None]
    assert not warned.passed
    assert warned.severity is dg.AssetCheckSeverity.WARN
    for day in (FIRST, SECOND, THIRD):
        found = evidence(warned)[str(day)]
        admitted, late, lost = orders.of(day)
        assert (found["admitted"], found["late"], lost) == (admitted, late, 0)
    # The table of the join has a result a day, in Dagster's own record of partitions.
    infos = instance.event_log_storage.get_asset_check_partition_info([PAID_DAY])
    assert {i.partition_key: status(i) for i in infos} == {
        "2026-03-02": "FAILED",
        "2026-03-03": "FAILED",
        "2026-03-04": "FAILED",
        "2026-03-05": "SUCCEEDED",
    }
    red = told["shop/paid", "day_is_complete", "2026-03-03"]
    yellow = told["shop/paid", "day_is_complete", "2026-03-02"]
    assert red.severity is dg.AssetCheckSeverity.ERROR
    assert yellow.severity is dg.AssetCheckSeverity.WARN
    by_id = {e.order_id for _, e in orders.admitted if e.at.date() == SECOND}
    paid = {e.order_id for _, e in payments.admitted if e.at.date() == SECOND}
    assert red.metadata["rows_matched"].value == len(by_id & paid)
    assert red.metadata["rows_unmatched"].value == len(by_id ^ paid)
    assert red.metadata["keys_pending"].value == 0
    assert red.metadata["rows_short"].value == 180
    page = (settings.home / "pages" / "dashboard.html").read_text()
    assert "shop/payments" in page
    assert SECRET not in page
    # The suite of each day that is over is asked once, and again when the day was written anew.
    of_days = [(key, day) for key, check, day in told if check == DAY_SUITE_CHECK]
    days_of_paid = [FIRST, SECOND, THIRD]
    assert set(of_days) == {(t.name, str(d)) for t in PAID.tables for d in days_of_paid}
    assert told["shop/paid", DAY_SUITE_CHECK, str(FIRST)].metadata["rows"].value == len(
        {e.order_id for _, e in orders.admitted if e.at.date() == FIRST}
        & {e.order_id for _, e in payments.admitted if e.at.date() == FIRST}
    )
    assert days_to_evaluate(instance, PAID.tables[0], days_of_paid) == []
    instance.report_runless_asset_event(
        dg.AssetMaterialization(table_key(PAID.tables[0]), partition=str(SECOND))
    )
    assert days_to_evaluate(instance, PAID.tables[0], days_of_paid) == [SECOND]


@pytest.mark.usefixtures("no_engine")
def test_b080_a_green_day_turns_red_by_rules_that_have_no_answer(
    tmp_path: Path, instance: dg.DagsterInstance, settings: Settings
) -> None:
    write_join(settings, write(settings, ORDERS, sent(2)), write(settings, PAYMENTS, sent(2)))
    job = definitions_in(SHOP, tmp_path).resolve_job_def("dashboard")
    job.execute_in_process(instance=instance)
    key = dg.AssetCheckKey(table_key(PAID.tables[0]), DAY_SUITE_CHECK)
    storage = instance.event_log_storage
    assert {status(i) for i in storage.get_asset_check_partition_info([key])} == {"SUCCEEDED"}

    unanswerable = Suite(
        expectations=(
            expect.no_rows_where("nowhere > 1", name="nothing nowhere"),
            expect.no_rows_where("CAST('x' AS INT) > 1", name="a number"),
            expect.no_rows_where("order_id < 0", name="no order below zero"),
        )
    )
    paid = replace(PAID, suite=unanswerable)
    defs = definitions_in(Topology([ORDERS, PAYMENTS, paid]), tmp_path)
    assert defs.resolve_job_def("dashboard").execute_in_process(instance=instance).success

    assert {status(i) for i in storage.get_asset_check_partition_info([key])} == {"FAILED"}
    (record,) = storage.get_asset_check_execution_history(key, limit=1)
    assert record.event is not None
    result = record.event.asset_check_evaluation
    assert result is not None
    assert "could not be evaluated" in str(result.description)
    table = str(result.metadata["results"].value)
    assert table.count("**ERROR**") == 2
    assert "no column 'nowhere'" in table
    # The rules stand, so the days are not asked about again.
    days = [FIRST, SECOND]
    assert days_to_evaluate(instance, PAID.tables[0], days, suites_of(paid)[0][1]) == []


@pytest.mark.usefixtures("no_engine")
def test_one_day_is_asked_for_by_its_partition(
    tmp_path: Path, instance: dg.DagsterInstance, settings: Settings
) -> None:
    write_join(settings, write(settings, ORDERS, sent(1)), write(settings, PAYMENTS, sent(1)))
    note_rows_since_the_first_day(SHOP, tmp_path)
    defs = definitions_in(SHOP, tmp_path)
    job = defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_selection=set(), asset_check_selection={PAID_DAY}
    )

    job.execute_in_process(instance=instance, partition_key="2026-03-02")

    (info,) = instance.event_log_storage.get_asset_check_partition_info([PAID_DAY])
    assert (info.partition_key, status(info)) == ("2026-03-02", "FAILED")


def day_check_job(defs: dg.Definitions) -> dg.JobDefinition:
    return defs.resolve_implicit_global_asset_job_def().get_subset(
        asset_selection=set(), asset_check_selection={PAID_DAY}
    )


@pytest.mark.usefixtures("no_engine")
def test_n074_each_day_of_a_range_is_told_apart(
    tmp_path: Path, instance: dg.DagsterInstance, settings: Settings
) -> None:
    write_join(settings, write(settings, ORDERS, sent(3)), write(settings, PAYMENTS, sent(3)))
    note_rows_since_the_first_day(SHOP, tmp_path)
    job = day_check_job(definitions_in(SHOP, tmp_path))
    days = [str(day) for day in (FIRST, SECOND, THIRD)]

    result = job.execute_in_process(
        instance=instance,
        tags={
            "dagster/asset_partition_range_start": days[0],
            "dagster/asset_partition_range_end": days[-1],
        },
    )

    infos = instance.event_log_storage.get_asset_check_partition_info([PAID_DAY])
    assert {i.partition_key for i in infos if i.partition_key} == set(days)
    told = {
        e.asset_check_evaluation_data.partition: e.asset_check_evaluation_data
        for e in result.all_events
        if e.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    }
    assert set(told) == {*days, None}
    failed = sum(not told[day].passed for day in days)
    assert f"{failed} of 3 days failed" in str(told[None].description)


def test_n074_without_a_day_it_says_what_to_choose(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    job = day_check_job(definitions_in(SHOP, tmp_path))

    result = job.execute_in_process(instance=instance, raise_on_error=False)

    assert "check 'day_is_complete' of 'shop/paid' is evaluated by days" in failure(result)


def test_the_clock_waits_for_a_first_table(
    tmp_path: Path, instance: dg.DagsterInstance, settings: Settings
) -> None:
    defs = definitions_in(SHOP, tmp_path)

    assert not tick(defs, instance, tmp_path, "dashboard_hourly").run_requests
    write(settings, ORDERS, sent(1))
    assert len(tick(defs, instance, tmp_path, "dashboard_hourly").run_requests or []) == 1


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("shop/paid", "#stream-shop-paid"),
        ("shop/orders_late", "#stream-shop-orders"),
        ("ops/stream_progress/shop", "#group-shop"),
        ("ops/dashboard", ""),
    ],
)
def test_tables_and_groups_lead_to_their_place_on_the_page_by_a_link_with_a_name(
    key: str, place: str, tmp_path: Path
) -> None:
    defs = definitions_in(SHOP, tmp_path)

    described = defs.resolve_asset_graph().get(dg.AssetKey(key.split("/"))).description

    [address] = re.findall(r"\n\n\[Dashboard\]\((.*)\)$", described or "")
    assert address.endswith(f"pages/dashboard.html{place}")
    assert "DAGSTER_HOME" not in address


def test_the_job_of_the_first_page_leads_to_the_dashboard(tmp_path: Path) -> None:
    described = definitions_in(SHOP, tmp_path).resolve_job_def("dashboard").description

    assert "[Dashboard](" in (described or "")
