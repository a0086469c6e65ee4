"""Results of suites as those of asset checks, with the rows that fail."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Final

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from pyspark.sql import SparkSession

from rivermark.dagster.jobs.check_results import SEVERITIES, unanswered
from rivermark.dagster.jobs.names import table_key
from rivermark.html.markdown import markdown_text
from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.model.check import HARDEST_FIRST
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.monitor.dashboard.failing_rows import page_path, write
from rivermark.monitor.dashboard.page_links import page_url
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.failing_rows import Evidence, evidence_of
from rivermark.quality.gx.evaluator import DocsEvaluator
from rivermark.quality.result import SuiteResult
from rivermark.settings import Settings

logger = logging.getLogger(__name__)

SUITE_CHECK: Final = "meets_expectations"
DAY_SUITE_CHECK: Final = "day_meets_expectations"
"""The same of one day of a table, which Dagster keeps by partition."""
DAYS_SHOWN: Final = 100
RULES: Final = "rules_of"
"""Key of a day's result for the identity of the rules that it was evaluated by."""


def suite_result(
    spark: SparkSession, settings: Settings, table: Table, suite: Suite
) -> dg.AssetCheckResult:
    """The suite on the newest version of the table; with its page and the failing rows."""
    lake = settings.lake()
    if not lake.exists(table):
        return no_table(table, SUITE_CHECK)
    path = lake.path(table)
    version = delta_table(path).version()
    evaluator = DocsEvaluator(
        rows=dataset_of(delta_table(path, version=version)),
        table=table,
        version=version,
        docs_root=settings.home / "quality",
        frame=lambda: read_delta(spark, path, version),
    )
    result = evaluator.evaluate(suite)
    page = page_path(settings, table)
    link = partial(page_url, settings)
    page.unlink(missing_ok=True)
    try:
        evidence = evidence_of_failures(settings, table, suite, result)
        if evidence is not None:
            page = write(evidence, page)
            return result_of_suite(table, result, evidence, page=page, link=link)
    except Exception as error:
        # Whether the rules hold is known already. The message may quote a value.
        name = type(error).__name__
        logger.warning("suite '%s': no failing rows of %s: %s", suite.name, table.name, name)
    return result_of_suite(table, result, link=link)


def suite_results_of_days(
    settings: Settings, table: Table, suite: Suite, days: Sequence[date]
) -> list[dg.AssetCheckResult]:
    """The suite on the rows of each day, at the newest version; starts no JVM."""
    lake = settings.lake()
    if not lake.exists(table):
        return [no_table(table, DAY_SUITE_CHECK)]
    newest = delta_table(lake.path(table))
    evaluator = DuckDbEvaluator(dataset_of(newest), table, newest.version())
    results = []
    for day in days:
        prefix = f"{day}: "
        try:
            result = evaluator.evaluate(suite, day)
        except Exception as error:
            key = dg.AssetCheckKey(table_key(table), DAY_SUITE_CHECK)
            results.append(unanswered(key, error, prefix))
            continue
        of_day = result_of_suite(table, result, check=DAY_SUITE_CHECK, prefix=prefix)
        results.append(of_day._replace(metadata={**of_day.metadata, RULES: identity_of(suite)}))
    return results


def days_to_evaluate(
    instance: dg.DagsterInstance, table: Table, days: Sequence[date], suite: Suite | None = None
) -> list[date]:
    """Those of the days without a result in Dagster, or with one from before they were written.

    With the suite, also those whose result is of other rules: a day that was green by yesterday's
    rules says nothing of today's.
    """
    key = dg.AssetCheckKey(table_key(table), DAY_SUITE_CHECK)
    storage = instance.event_log_storage
    evaluated = {
        info.partition_key
        for info in storage.get_asset_check_partition_info([key])
        if info.latest_check_event_storage_id > (info.latest_materialization_storage_id or 0)
    }
    wanted = None if suite is None else identity_of(suite)

    def stands(day: str) -> bool:
        if day not in evaluated or wanted is None:
            return day in evaluated
        records = storage.get_asset_check_execution_history(
            key, limit=1, partition_filter=PartitionKeyFilter(key=day)
        )
        event = records[0].event if records else None
        result = event.asset_check_evaluation if event is not None else None
        return result is not None and result.metadata.get(RULES) == wanted

    return [day for day in days if not stands(day.isoformat())]


def identity_of(suite: Suite) -> dg.MetadataValue:
    """A fingerprint of a suite's rules."""
    return dg.MetadataValue.text(hashlib.sha256(repr(suite.rules).encode()).hexdigest()[:16])


def evidence_of_failures(
    settings: Settings, table: Table, suite: Suite, result: SuiteResult
) -> Evidence | None:
    """The rows that break the failed rules, by day, at the version that was evaluated."""
    failed = {failure.name for failure in result.failures if failure.error is None}
    rules = [rule for rule in suite.rules if rule.name in failed]
    if not rules or not result.rows:
        return None
    rows = dataset_of(delta_table(settings.lake().path(table), version=result.version))
    return evidence_of(rows, table, rules, version=result.version)


def result_of_suite(
    table: Table,
    result: SuiteResult,
    evidence: Evidence | None = None,
    *,
    check: str = SUITE_CHECK,
    prefix: str = "",
    page: Path | None = None,
    link: Callable[[Path], str] = Path.as_uri,
) -> dg.AssetCheckResult:
    """A failed critical rule makes an error, a warning rule a warning, an info rule nothing.

    `link` makes the addresses of Data Docs and of the `page` with the failing rows.
    """
    metadata: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in figures(result).items()
    }
    metadata["version"] = dg.MetadataValue.int(result.version)
    metadata["results"] = dg.MetadataValue.md(results_table(result))
    if result.docs_path is not None:
        metadata["data_docs"] = dg.MetadataValue.url(link(result.docs_path))
    if evidence is not None:
        metadata |= _shown(evidence)
    if page is not None:
        metadata["bad_rows"] = dg.MetadataValue.url(link(page))
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=check,
        passed=result.passed,
        severity=SEVERITIES[result.severity],
        description=prefix + sentence(result),
        metadata=metadata,
    )


def no_table(table: Table, check: str) -> dg.AssetCheckResult:
    """The result for a table that no run has created yet."""
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=check,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"table '{table.name}' does not exist yet: nothing was evaluated",
    )


def _shown(evidence: Evidence) -> dict[str, dg.MetadataValue]:
    """Rows that break a rule, counted by day, with the command that opens them."""
    shown: dict[str, dg.MetadataValue] = {
        "bad_rows_command": dg.MetadataValue.text(evidence.command)
    }
    by_day = [
        dg.TableRecord({"day": day, "rule": failing.rule, "rows": rows})
        for failing in evidence.failing
        for day, rows in evidence.days_of(failing, DAYS_SHOWN)
    ]
    if by_day:
        shown["by_day"] = dg.MetadataValue.table(by_day)
    return shown


def figures(result: SuiteResult) -> dict[str, int | float]:
    """The numbers of a run that are worth a plot: the same keys for every suite."""
    return {
        "rows": result.rows,
        "rules": len(result.results),
        "rules_failed": len(result.failures),
        "check_seconds": round(result.elapsed.total_seconds(), 3),
    }


def results_table(result: SuiteResult) -> str:
    """The results as a Markdown table, failures first; values from the data are shown as text."""
    lines = ["| | rule | severity | observed | limit | for example |", "|---|---|---|---|---|---|"]
    for r in sorted(result.results, key=lambda r: r.passed):
        cells = (
            "**ERROR**" if r.error else "passed" if r.passed else "**FAILED**",
            markdown_text(r.name),
            r.severity,
            markdown_text(r.observed),
            markdown_text(r.bound),
            markdown_text("; ".join(r.example_texts)),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentence(result: SuiteResult) -> str:
    """One line about the run: what was evaluated, and the first rule that failed."""
    subject = f"{result.table} at version {result.version}, {result.rows:,} rows evaluated: "
    if not result.failures:
        return f"{subject}all {len(result.results)} rules hold"
    first = min(result.failures, key=lambda r: HARDEST_FIRST.index(r.severity))
    return (
        f"{subject}{len(result.failures)} of {len(result.results)} rules failed; "
        f"'{first.name}': {first.observed} (limit: {first.bound})"
    )
