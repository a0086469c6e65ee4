"""From results of checks to those of asset checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

import dagster as dg

from rivermark.dagster.jobs.names import table_key
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


def every_result(
    checks: Mapping[str, Evaluate], keys: Mapping[str, dg.AssetCheckKey] | None = None
) -> Iterator[dg.AssetCheckResult]:
    """Every result; then an error if a check could not be evaluated.

    A check that crashes keeps no other from being evaluated. Where `keys` has its asset check, it
    has failed there: what nothing is known of must not stay as it was.

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
            if keys is None:
                continue
            result = unanswered(keys[name], error)
        yield result
    if crashed:
        reasons = "; ".join(f"{name}: {error}" for name, error in crashed.items())
        raise dg.Failure(
            description=f"{len(crashed)} of {len(checks)} checks could not be evaluated: {reasons}",
            allow_retries=False,
        ) from next(iter(crashed.values()))


def unanswered(
    key: dg.AssetCheckKey, error: BaseException, prefix: str = ""
) -> dg.AssetCheckResult:
    """The failed result of a check that could not be evaluated, with the reason."""
    reason = str(error) or type(error).__name__
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=False,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{prefix}could not be evaluated: {reason}",
        metadata={"error": dg.MetadataValue.text(f"{type(error).__name__}: {error}")},
    )


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
