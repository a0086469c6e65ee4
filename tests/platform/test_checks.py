"""Checks: one question each, and a question that cannot be answered is no answer."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from rivermark.backfill.verify import Fingerprint, Verified
from rivermark.dagster.jobs.check_results import asset_check_result, every_result
from rivermark.dagster.jobs.input_match import MATCH_CHECK, match_result
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.suites import result_of_suite, suite_result
from rivermark.lake.schema import create_table
from rivermark.model import expectations as expect
from rivermark.model.check import CheckResult
from rivermark.model.suite import Suite
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.quality.result import SuiteResult
from rivermark.settings import Settings
from tests.platform.conftest import definitions_in, failure
from tests.platform.small_topology import HOURLY, RIDES, SMALL

pytestmark = pytest.mark.platform

CHECK = StreamCheck(
    name="rows_are_unique",
    table=HOURLY.tables[0],
    stream="taxi/hourly",
    description="No two rows share their keys.",
    severity="warning",
    evaluate=lambda settings, now: CheckResult(
        name="rows_are_unique", severity="critical", passed=True, observed=""
    ),
)
EXPECTED = CheckResult(
    name="tips between 0 and 100", severity="critical", passed=False, observed="2 of 9", bound="0"
)
SUITE = SuiteResult(
    suite="taxi/hourly",
    table="taxi/hourly",
    version=7,
    rows=9,
    results=(EXPECTED,),
    docs_path=Path("/pages/taxi hourly.html"),
    elapsed=timedelta(seconds=1),
)


def evaluations(
    result: dg.ExecuteInProcessResult,
) -> dict[tuple[str, str], dg.AssetCheckEvaluation]:
    return {
        (e.asset_key.to_user_string(), e.check_name): e
        for e in result.get_asset_check_evaluations()
    }


@pytest.mark.usefixtures("no_engine")
def test_watching_asks_the_lake_about_every_table_and_starts_no_engine(
    defs: dg.Definitions, instance: dg.DagsterInstance, settings: Settings
) -> None:
    for stream in (RIDES, HOURLY):
        for table in stream.tables:
            create_table(settings.lake(), table)

    found = evaluations(defs.resolve_job_def("watch").execute_in_process(instance=instance))

    claims = {(c.table.name, c.name) for s in SMALL.streams for c in checks_of_stream(s)}
    assert set(found) == claims
    assert {dg.AssetCheckKey(table_key(t), name) for t, name in claims} <= set(
        defs.resolve_asset_graph().asset_check_keys
    )
    assert all(evaluation.passed for evaluation in found.values())


def test_b080_a_crash_of_a_check_fails_its_run_and_the_check_with_the_message(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(settings: Settings, now: datetime) -> CheckResult:
        raise OSError("the log cannot be read")

    def with_a_crash(stream: Any) -> tuple[StreamCheck, ...]:
        return tuple(
            replace(claim, evaluate=crash) if claim.name == "every_row_is_accounted_for" else claim
            for claim in checks_of_stream(stream)
        )

    monkeypatch.setattr("rivermark.dagster.checks.checks_of_stream", with_a_crash)
    job = definitions_in(SMALL, tmp_path).resolve_job_def("watch")

    result = job.execute_in_process(instance=instance, raise_on_error=False)

    assert not result.success
    found = evaluations(result)
    crashed = found["taxi/rides", "every_row_is_accounted_for"]
    assert not crashed.passed
    assert crashed.description == "could not be evaluated: the log cannot be read"
    assert found["taxi/rides", "is_alive"].passed, "the other questions were answered all the same"
    assert "taxi/rides every_row_is_accounted_for: the log cannot be read" in failure(result)


def test_an_answer_is_shown_with_its_numbers_its_bound_and_its_offenders() -> None:
    answer = CheckResult(
        name="rows_are_unique",
        severity="warning",
        passed=False,
        observed="2 keys more than once",
        numbers={"rows": 9, "share": 0.5},
        examples=({"key": "7", "copies": 2, "file": None},),
    )

    found = asset_check_result(CHECK.table, answer)

    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.WARN
    assert found.description == "2 keys more than once"
    metadata = dict(found.metadata)
    assert metadata["rows"] == dg.MetadataValue.int(9)
    assert metadata["share"] == dg.MetadataValue.float(0.5)
    assert isinstance(metadata["offenders"], dg.TableMetadataValue)
    assert metadata["offenders"].records[0].data == {"key": "7", "copies": 2, "file": ""}


@pytest.mark.parametrize(
    ("severity", "passed", "shown"),
    [
        ("critical", False, dg.AssetCheckSeverity.ERROR),
        ("warning", False, dg.AssetCheckSeverity.WARN),
        ("info", True, dg.AssetCheckSeverity.ERROR),
    ],
)
def test_severities_of_great_expectations_become_those_of_dagster(
    severity: Any, passed: bool, shown: dg.AssetCheckSeverity
) -> None:
    result = replace(SUITE, results=(replace(EXPECTED, severity=severity),))

    found = result_of_suite(HOURLY.tables[0], result)

    assert found.passed is passed
    if not passed:
        assert found.severity is shown


def test_a_suite_links_its_page_and_the_version_it_looked_at() -> None:
    metadata = dict(result_of_suite(HOURLY.tables[0], SUITE).metadata)

    assert metadata["data_docs"] == dg.MetadataValue.url("file:///pages/taxi%20hourly.html")
    assert metadata["version"] == dg.MetadataValue.int(7)


def test_b080_a_check_that_crashes_has_failed_with_its_message_beside_the_others() -> None:
    good = asset_check_result(
        CHECK.table,
        CheckResult(name="rows_are_unique", severity="critical", passed=True, observed="all well"),
    )

    def crash() -> dg.AssetCheckResult:
        raise ValueError("no such column")

    key = dg.AssetCheckKey(table_key(CHECK.table), "is_alive")
    results = every_result({"first": crash, "second": lambda: good}, {"first": key, "second": key})

    failed = next(results)
    assert (failed.check_name, failed.passed) == ("is_alive", False)
    assert failed.severity is dg.AssetCheckSeverity.ERROR
    assert failed.description == "could not be evaluated: no such column"
    assert next(results) is good
    with pytest.raises(dg.Failure, match="1 of 2 checks could not be evaluated: first: no such"):
        next(results)


def test_b080_a_rule_without_an_answer_fails_its_suite_with_the_message() -> None:
    rule = EXPECTED.name
    crashed = replace(EXPECTED, passed=False, severity="critical", error="no column tips",
                      observed="could not be evaluated: no column tips")  # fmt: skip
    found = result_of_suite(HOURLY.tables[0], replace(SUITE, results=(crashed,)))

    assert not found.passed
    assert found.severity is dg.AssetCheckSeverity.ERROR
    assert f"'{rule}': could not be evaluated: no column tips" in str(found.description)
    assert "**ERROR**" in str(dict(found.metadata)["results"].value)


def test_n060_failing_rows_that_cannot_be_read_do_not_end_the_check(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = HOURLY.tables[0]
    create_table(settings.lake(), table)

    def unreadable(*_: object) -> None:
        raise OverflowError("date value out of range")

    evaluator = SimpleNamespace(evaluate=lambda _: SUITE)
    monkeypatch.setattr("rivermark.dagster.jobs.suites.read_delta", lambda *_: None)
    monkeypatch.setattr("rivermark.dagster.jobs.suites.DocsEvaluator", lambda **_: evaluator)
    monkeypatch.setattr("rivermark.dagster.jobs.suites.evidence_of_failures", unreadable)

    found = suite_result(
        cast(SparkSession, None), settings, table, Suite(table.name, (expect.not_null("rides"),))
    )

    assert not found.passed
    assert found.description == result_of_suite(table, SUITE).description
    assert "bad_rows" not in found.metadata


def test_answers_come_before_the_crash_is_raised() -> None:
    good = asset_check_result(
        CHECK.table,
        CheckResult(name="rows_are_unique", severity="critical", passed=True, observed="all well"),
    )

    def crash() -> dg.AssetCheckResult:
        raise ValueError("no such column")

    asked: dict[str, Callable[[], dg.AssetCheckResult]] = {"first": crash, "second": lambda: good}
    answers = every_result(asked)

    assert next(answers) is good
    with pytest.raises(dg.Failure, match="1 of 2 checks could not be evaluated: first: no such"):
        next(answers)


def test_the_suites_job_compares_derived_tables_by_days_with_their_inputs(
    defs: dg.Definitions,
) -> None:
    selected = defs.resolve_job_def("suites").asset_layer.asset_graph.asset_check_keys
    compared = {key.asset_key.path[-1] for key in selected if key.name == MATCH_CHECK}

    assert compared == {"hourly", "daily", "local"}, "alerts have no days"


def test_a_day_that_is_not_what_its_inputs_give_fails_with_what_differs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = date(2026, 3, 2)
    whole, holed = Fingerprint(24, 7), Fingerprint(23, 5)
    results = [
        Verified("taxi/hourly", day, {"taxi/hourly": whole}, {"taxi/hourly": whole}),
        Verified(
            "taxi/hourly",
            day,
            {"taxi/hourly": holed},
            {"taxi/hourly": whole},
            {"taxi/hourly": "1 added"},
        ),
    ]
    monkeypatch.setattr("rivermark.dagster.jobs.input_match.verify", lambda *_, **__: iter(results))

    result = match_result(None, settings, SMALL, HOURLY)  # type: ignore[arg-type]

    assert not result.passed
    assert result.severity is dg.AssetCheckSeverity.ERROR
    assert "2026-03-02 is not what the inputs give: taxi/hourly: 1 added" in (
        result.description or ""
    )
    assert result.metadata["rows_computed"] == dg.MetadataValue.int(48)
    assert result.metadata["rows_published"] == dg.MetadataValue.int(47)
