"""What Great Expectations says of a table, as the result of a check, with the rows it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Final

import dagster as dg
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.check_results import SEVERITIES
from jobs.main_module import main_module_with_a_file
from jobs.names import table_key
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.monitor.dashboard.failing_rows import page_path, write
from rivermark.quality.duckdb_evaluator import judge_here
from rivermark.quality.failing_rows import Evidence, gather
from rivermark.quality.gx.run import run_suite
from rivermark.quality.result import SuiteResult
from rivermark.quality.summary import figures, results_table, sentence, worst_verdict
from rivermark.settings import Settings

SUITE_CHECK: Final = "meets_expectations"
DAY_SUITE_CHECK: Final = "day_meets_expectations"
"""The same of one day of a table, which Dagster keeps by partition."""
DAYS_SHOWN: Final = 100


def ask_suite(
    spark: SparkSession, settings: Settings, table: Table, suite: Suite
) -> dg.AssetCheckResult:
    """Run a suite on the newest version of the table, pinned; link its page and the bad rows."""
    lake = settings.lake()
    if not lake.exists(table):
        return not_there(table, SUITE_CHECK)
    path = lake.path(table)
    version = DeltaTable(path).version()
    frame = spark.read.format("delta").option("versionAsOf", version).load(path)
    with main_module_with_a_file():
        found = run_suite(
            frame,
            suite,
            table=table.name,
            version=version,
            docs_root=settings.home / "quality",
            personal=table.personal,
        )
    evidence = evidence_of(settings, table, suite, found)
    page = page_path(settings, table)
    if evidence is None:
        page.unlink(missing_ok=True)
        return result_of_suite(table, found)
    return result_of_suite(table, found, evidence, page=write(evidence, page))


def ask_suite_of_days(
    settings: Settings, table: Table, suite: Suite, days: Sequence[date]
) -> list[dg.AssetCheckResult]:
    """What the suite says of the rows of each day, by the newest version; starts no engine."""
    lake = settings.lake()
    if not lake.exists(table):
        return [not_there(table, DAY_SUITE_CHECK)]
    found = DeltaTable(lake.path(table))
    rows = found.to_pyarrow_dataset()
    return [
        result_of_suite(
            table,
            judge_here(rows, suite, table, version=found.version(), day=day),
            None,
            check=DAY_SUITE_CHECK,
            told=f"{day}: ",
        )
        for day in days
    ]


def days_to_ask(instance: dg.DagsterInstance, table: Table, days: Sequence[date]) -> list[date]:
    """Those of the days of which Dagster keeps no answer, or one from before they were written."""
    key = dg.AssetCheckKey(table_key(table), DAY_SUITE_CHECK)
    told = {
        info.partition_key
        for info in instance.event_log_storage.get_asset_check_partition_info([key])
        if info.latest_check_event_storage_id > (info.latest_materialization_storage_id or 0)
    }
    return [day for day in days if day.isoformat() not in told]


def evidence_of(
    settings: Settings, table: Table, suite: Suite, found: SuiteResult
) -> Evidence | None:
    """The rows that break the rules that failed, by day, of the version that was judged."""
    failed = {result.name for result in found.failures}
    rules = [rule for rule in suite.rules if rule.name in failed]
    if not rules or not found.rows:
        return None
    rows = DeltaTable(settings.lake().path(table), version=found.version).to_pyarrow_dataset()
    return gather(rows, table, rules, version=found.version)


def result_of_suite(
    table: Table,
    found: SuiteResult,
    evidence: Evidence | None = None,
    *,
    check: str = SUITE_CHECK,
    told: str = "",
    page: Path | None = None,
) -> dg.AssetCheckResult:
    """A failed critical rule makes an error, a warning rule a warning, an info rule nothing."""
    metadata: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in figures(found).items()
    }
    metadata["version"] = dg.MetadataValue.int(found.version)
    metadata["results"] = dg.MetadataValue.md(results_table(found))
    if found.docs_path is not None:
        metadata["data_docs"] = dg.MetadataValue.url(found.docs_path.as_uri())
    if evidence is not None:
        metadata |= _shown(evidence)
    if page is not None:
        metadata["bad_rows"] = dg.MetadataValue.url(page.as_uri())
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=check,
        passed=found.passed,
        severity=SEVERITIES[worst_verdict(found) or "error"],
        description=told + sentence(found),
        metadata=metadata,
    )


def not_there(table: Table, check: str) -> dg.AssetCheckResult:
    """The result for a table that no run has made yet."""
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=check,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"table '{table.name}' is not there yet: nothing was looked at",
    )


def _shown(evidence: Evidence) -> dict[str, dg.MetadataValue]:
    """Which day has how many rows that break which rule, and how to open them."""
    shown: dict[str, dg.MetadataValue] = {
        "bad_rows_command": dg.MetadataValue.text(evidence.command)
    }
    by_day = [
        dg.TableRecord({"day": day.isoformat(), "rule": rule, "rows": rows})
        for rule, days in evidence.by_day.items()
        for day, rows in sorted(days.items(), reverse=True)[:DAYS_SHOWN]
    ]
    if by_day:
        shown["by_day"] = dg.MetadataValue.table(by_day)
    return shown
