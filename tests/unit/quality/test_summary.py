"""How results become a severity, numbers and a table on a page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rivermark.dagster.jobs.suites import figures, results_table, sentence
from rivermark.model.check import CheckResult, Severity
from rivermark.quality.result import SuiteResult


def answered(
    name: str, severity: Severity, *, passed: bool, values: tuple[str, ...] = ()
) -> CheckResult:
    return CheckResult(
        name=name,
        severity=severity,
        passed=passed,
        observed="3 of 9 do not (33.3 %), 6 do",
        bound="all",
        unexpected_count=3,
        evaluated_count=9,
        examples=tuple({"tip": value} for value in values),
    )


def run_of(*results: CheckResult) -> SuiteResult:
    return SuiteResult(
        suite="taxi/tips",
        table="taxi/tips",
        version=7,
        rows=9,
        results=results,
        docs_path=None,
        elapsed=timedelta(seconds=1.5),
    )


@pytest.mark.parametrize(
    ("failed", "severity", "passed"),
    [
        ((), "info", True),
        (("info",), "info", True),
        (("warning",), "warning", False),
        (("info", "warning"), "warning", False),
        (("warning", "critical"), "critical", False),
    ],
)
def test_the_hardest_failure_decides(
    failed: tuple[Severity, ...], severity: str, passed: bool
) -> None:
    held = answered("held", "critical", passed=True)

    result = run_of(held, *(answered(s, s, passed=False) for s in failed))

    assert result.severity == severity
    assert result.passed is passed


def test_the_table_shows_failures_first_with_number_and_limit() -> None:
    lines = results_table(
        run_of(
            answered("held", "critical", passed=True),
            answered("broke", "warning", passed=False, values=("7", "8")),
        )
    ).splitlines()

    assert lines[2] == (
        "| **FAILED** | broke | warning | 3 of 9 do not (33.3 %), 6 do | all | 7; 8 |"
    )
    assert lines[3].startswith("| passed | held |")


def test_values_from_the_data_stay_in_their_cell_and_are_no_markup() -> None:
    evil = "a|b\n<script>x</script> ![p](http://e) `c` **d**"

    line = results_table(run_of(answered("r", "info", passed=False, values=(evil,)))).splitlines()[
        2
    ]

    shown = line.rsplit(" | ", 1)[1]
    assert shown == (r"a\|b &lt;script&gt;x&lt;/script&gt; !\[p\](http://e) \`c\` \*\*d\*\* |")


def test_the_sentence_names_the_first_hard_failure_and_what_was_looked_at() -> None:
    soft = answered("soft", "info", passed=False)
    hard = answered("hard", "critical", passed=False)

    assert sentence(run_of(soft, hard)) == (
        "taxi/tips at version 7, 9 rows evaluated: 2 of 2 rules failed; "
        "'hard': 3 of 9 do not (33.3 %), 6 do (limit: all)"
    )
    assert sentence(run_of(answered("r", "critical", passed=True))) == (
        "taxi/tips at version 7, 9 rows evaluated: all 1 rules hold"
    )


def test_the_same_figures_are_reported_for_every_suite() -> None:
    result = run_of(answered("a", "info", passed=False), answered("b", "critical", passed=True))

    assert figures(result) == {"rows": 9, "rules": 2, "rules_failed": 1, "check_seconds": 1.5}
