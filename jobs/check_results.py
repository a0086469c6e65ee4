"""From results of checks to those of asset checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

import dagster as dg

from jobs.names import table_key
from rivermark.model.check import CheckResult, Severity
from rivermark.model.table import Table
from rivermark.monitor.checks.check import StreamCheck
from rivermark.settings import Settings

SEVERITIES: Final[dict[Severity, dg.AssetCheckSeverity]] = {
    "critical": dg.AssetCheckSeverity.ERROR,
    "warning": dg.AssetCheckSeverity.WARN,
    # A failed rule of severity info passes the suite, so that this is never shown.
    "info": dg.AssetCheckSeverity.ERROR,
}

Evaluate = Callable[[], dg.AssetCheckResult]


def every_result(checks: Mapping[str, Evaluate]) -> Iterator[dg.AssetCheckResult]:
    """Every result that there is; then an error if a check could not be evaluated.

    A check that crashes says nothing about the data, so it never becomes a failed one, and it never
    keeps the others from being evaluated.

    Raises:
        dg.Failure: Checks crashed; the first of them is its cause.
    """
    crashed: dict[str, BaseException] = {}
    for name, evaluate in checks.items():
        try:
            result = evaluate()
        except (Exception, SystemExit) as error:
            # SystemExit: a library that ends the process would make a success of no result.
            crashed[name] = error
            continue
        yield result
    if crashed:
        reasons = "; ".join(f"{name}: {error}" for name, error in crashed.items())
        raise dg.Failure(
            description=f"{len(crashed)} of {len(checks)} checks could not be evaluated: {reasons}",
            allow_retries=False,
        ) from next(iter(crashed.values()))


def evaluated(check: StreamCheck, settings: Settings, now: datetime) -> dg.AssetCheckResult:
    """The check's result, as the page of its table shows it."""
    return asset_check_result(check.table, check.evaluate(settings, now))


def asset_check_result(table: Table, result: CheckResult) -> dg.AssetCheckResult:
    """The result that the page of the table shows."""
    metadata: dict[str, dg.MetadataValue] = {
        name: dg.MetadataValue.int(n) if isinstance(n, int) else dg.MetadataValue.float(n)
        for name, n in result.numbers.items()
    }
    if result.examples:
        metadata["offenders"] = dg.MetadataValue.table(
            [
                dg.TableRecord({k: "" if cell is None else cell for k, cell in example.items()})
                for example in result.examples
            ]
        )
    return dg.AssetCheckResult(
        asset_key=table_key(table),
        check_name=result.name,
        passed=result.passed,
        severity=SEVERITIES[result.severity],
        description=result.observed,
        metadata=metadata,
    )
