"""From the answers of the lake to results of asset checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import dagster as dg

from jobs.names import table_key
from rivermark.monitor.checks.check import Answer, Claim, Offender

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


def _cells(offender: Offender) -> dict[str, str | int | float]:
    return {name: "" if cell is None else cell for name, cell in offender.items()}
