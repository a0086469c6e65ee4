"""How results become a severity, numbers and a table on a page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rivermark.model.rule import Severity
from rivermark.quality.result import ExpectationResult, SuiteResult
from rivermark.quality.summary import figures, results_table, sentence, worst_verdict


def answered(
    name: str, severity: Severity, *, passed: bool, sample: tuple[str, ...] | None = None
) -> ExpectationResult:
    return ExpectationResult(
        name=name,
        severity=severity,
        passed=passed,
        observed="3 of 9 do not (33.3 %), 6 do",
        bound="all",
        unexpected_count=3,
        looked_at=9,
        sample=sample,
    )


def run_of(*results: ExpectationResult) -> SuiteResult:
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
    ("failed", "verdict", "passed"),
    [
        ((), None, True),
        (("info",), None, True),
        (("warning",), "warn", False),
        (("info", "warning"), "warn", False),
        (("warning", "critical"), "error", False),
    ],
)
def test_the_hardest_failure_decides(
    failed: tuple[Severity, ...], verdict: str | None, passed: bool
) -> None:
    held = answered("held", "critical", passed=True)

    result = run_of(held, *(answered(s, s, passed=False) for s in failed))

    assert worst_verdict(result) == verdict
    assert result.passed is passed


def test_the_table_shows_failures_first_with_number_and_limit() -> None:
    lines = results_table(
        run_of(
            answered("held", "critical", passed=True),
            answered("broke", "warning", passed=False, sample=("7", "8")),
        )
    ).splitlines()

    assert lines[2] == (
        "| **FAILED** | broke | warning | 3 of 9 do not (33.3 %), 6 do | all | 7; 8 |"
    )
    assert lines[3].startswith("| passed | held |")


def test_values_from_the_data_stay_in_their_cell_and_are_no_markup() -> None:
    evil = "a|b\n<script>x</script> ![p](http://e) `c` **d**"

    line = results_table(run_of(answered("r", "info", passed=False, sample=(evil,)))).splitlines()[
        2
    ]

    shown = line.rsplit(" | ", 1)[1]
    assert shown == (r"a\|b &lt;script&gt;x&lt;/script&gt; !\[p\](http://e) \`c\` \*\*d\*\* |")


def test_the_sentence_names_the_first_hard_failure_and_what_was_looked_at() -> None:
    soft = answered("soft", "info", passed=False)
    hard = answered("hard", "critical", passed=False)

    assert sentence(run_of(soft, hard)) == (
        "taxi/tips at version 7, 9 rows looked at: 2 of 2 rules failed; "
        "'hard': 3 of 9 do not (33.3 %), 6 do (limit: all)"
    )
    assert sentence(run_of(answered("r", "critical", passed=True))) == (
        "taxi/tips at version 7, 9 rows looked at: all 1 rules hold"
    )


def test_the_same_figures_are_reported_for_every_suite() -> None:
    result = run_of(answered("a", "info", passed=False), answered("b", "critical", passed=True))

    assert figures(result) == {"rows": 9, "rules": 2, "rules_failed": 1, "check_seconds": 1.5}
    assert result.results[0].unexpected_share == 3 / 9
