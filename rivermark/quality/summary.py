"""From results to what a check reports: how bad, which numbers, and a table to read."""

from __future__ import annotations

import html
from typing import Literal

from rivermark.quality.result import ExpectationResult, SuiteResult

Verdict = Literal["error", "warn"]


def worst_verdict(result: SuiteResult) -> Verdict | None:
    """`error` if a critical rule failed, else `warn` if a warning rule did, else None: passed."""
    severities = {r.severity for r in result.failures}
    if "critical" in severities:
        return "error"
    return "warn" if "warning" in severities else None


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
            "passed" if r.passed else "**FAILED**",
            _as_text(r.name),
            r.severity,
            _as_text(r.observed),
            _as_text(r.bound),
            _as_text("; ".join(r.sample or ())),
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentence(result: SuiteResult) -> str:
    """One line about the run: what was looked at, and the first rule that failed."""
    looked_at = f"{result.table} at version {result.version}, {result.rows:,} rows looked at: "
    if not result.failures:
        return f"{looked_at}all {len(result.results)} rules hold"
    first = min(result.failures, key=_hardness)
    return (
        f"{looked_at}{len(result.failures)} of {len(result.results)} rules failed; "
        f"'{first.name}': {first.observed} (limit: {first.bound})"
    )


def _hardness(result: ExpectationResult) -> int:
    return ("critical", "warning", "info").index(result.severity)


def _as_text(value: str) -> str:
    # A value from the data must neither break the table nor become markup on the page.
    one_line = " ".join(value.split())
    escaped = html.escape(one_line, quote=False)
    for mark in "\\`*_[]|":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
