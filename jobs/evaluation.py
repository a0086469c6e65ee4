"""From the answers of the lake and of Great Expectations to results of asset checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import dagster as dg
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.main_module import main_module_with_a_file
from jobs.names import table_key
from rivermark.lake.table import Table
from rivermark.quality.outcome import SuiteResult
from rivermark.quality.run import run_suite
from rivermark.quality.suite import Suite
from rivermark.quality.verdict import figures, results_table, sentence, worst_verdict
from rivermark.settings import Settings
from rivermark.watch.claim import Answer, Claim, Offender

SUITE_CHECK: Final = "meets_expectations"
SEVERITIES: Final = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}

Ask = Callable[[], dg.AssetCheckResult]


def every_answer(asked: Mapping[str, Ask]) -> Iterator[dg.AssetCheckResult]:
    """Every answer that can be had; then the first question that could not be answered is raised.

    A question that crashes says nothing about the data, so it never becomes a failed check, and it
    never keeps the others from being answered.
    """
    crashed: dict[str, BaseException] = {}
    for name, ask in asked.items():
        try:
            found = ask()
        except (Exception, SystemExit) as error:
            # SystemExit: a library that ends the process would make a success of no answer.
            crashed[name] = error
            continue
        yield found
    if crashed:
        told = "; ".join(f"{name}: {error}" for name, error in crashed.items())
        raise dg.Failure(
            description=f"{len(crashed)} of {len(asked)} checks could not be evaluated: {told}",
            allow_retries=False,
        ) from next(iter(crashed.values()))


def result_of_claim(claim: Claim, answer: Answer) -> dg.AssetCheckResult:
    """The result that the page of the table shows."""
    metadata: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in answer.numbers.items()
    }
    if answer.offenders:
        metadata["offenders"] = dg.MetadataValue.table(
            [dg.TableRecord(_cells(offender)) for offender in answer.offenders]
        )
    return dg.AssetCheckResult(
        asset_key=table_key(claim.table),
        check_name=claim.name,
        passed=answer.holds,
        severity=SEVERITIES[answer.severity or claim.severity],
        description=answer.sentence,
        metadata=metadata,
    )


def ask_suite(
    spark: SparkSession, settings: Settings, table: Table, suite: Suite
) -> dg.AssetCheckResult:
    """Run a suite on the newest version of the table, pinned, and link its page."""
    lake = settings.lake()
    if not lake.exists(table):
        return dg.AssetCheckResult(
            asset_key=table_key(table),
            check_name=SUITE_CHECK,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=f"table '{table.name}' is not there yet: nothing was looked at",
        )
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
    return result_of_suite(table, found)


def result_of_suite(table: Table, found: SuiteResult) -> dg.AssetCheckResult:
    """A failed critical rule makes an error, a warning rule a warning, an info rule nothing."""
    metadata: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in figures(found).items()
    }
    metadata["version"] = dg.MetadataValue.int(found.version)
    metadata["results"] = dg.MetadataValue.md(results_table(found))
    if found.docs_path is not None:
        metadata["data_docs"] = dg.MetadataValue.url(found.docs_path.as_uri())
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=SUITE_CHECK,
        passed=found.passed,
        severity=SEVERITIES[worst_verdict(found) or "error"],
        description=sentence(found),
        metadata=metadata,
    )


def _cells(offender: Offender) -> dict[str, str | int | float]:
    return {name: "" if cell is None else cell for name, cell in offender.items()}
