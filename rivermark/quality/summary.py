"""Results of a suite in a page's terms: numbers, a sentence, and a Markdown table."""

from __future__ import annotations

from rivermark.html.markdown import markdown_text
from rivermark.model.check import HARDEST_FIRST
from rivermark.quality.result import SuiteResult


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
