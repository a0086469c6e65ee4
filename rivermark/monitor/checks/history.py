"""Results of checks, kept as a table, so that a page can show how they developed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from deltalake import write_deltalake
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.lake.system_tables import rows_of
from rivermark.model.check import CheckResult, Severity
from rivermark.model.table import Table
from rivermark.monitor.checks.check import StreamCheck
from rivermark.settings import Settings

CHECK_RESULTS: Final = Table(
    name="ops/check_results",
    schema=StructType(
        [
            StructField("at", TimestampType()),
            StructField("stream", StringType()),
            StructField("table", StringType()),
            StructField("claim", StringType()),
            StructField("result", StringType()),
            StructField("sentence", StringType()),
            StructField("answered", BooleanType()),
        ]
    ),
    description="One row a check and evaluation: held, warn or error, and what was observed.",
    event_time="at",
)
FAILED: Final[dict[Severity, str]] = {"critical": "error", "warning": "warn", "info": "held"}
"""A failed check's `result` as it is stored, by severity."""
UNANSWERED: Final = "unanswered"
FILES_BEFORE_COMPACTING: Final = 200
"""An evaluation a quarter hour for two days; then its files become one."""

NEWEST: Final = """
SELECT * FROM results
QUALIFY row_number() OVER (PARTITION BY stream, "table", claim ORDER BY "at" DESC) <= $newest
ORDER BY stream, "table", claim, "at"
"""


@dataclass(frozen=True)
class RecordedResult:
    """A result as it is kept; `result` is 'held', 'warn', 'error', or 'unanswered'."""

    at: datetime
    stream: str
    table: str
    check: str
    result: str
    observed: str

    @property
    def passed(self) -> bool:
        """True if the check passed."""
        return self.result == "held"


@dataclass(frozen=True)
class Evaluation:
    """A check with its result, or with the problem because of which there is none."""

    check: StreamCheck
    result: CheckResult | None
    problem: str = ""

    @property
    def passed(self) -> bool:
        """True if the check was evaluated and passed."""
        return self.result is not None and self.result.passed

    @property
    def observed(self) -> str:
        """The observation in words, or why there was none."""
        return self.result.observed if self.result else f"cannot be evaluated: {self.problem}"

    def recorded(self, at: datetime) -> RecordedResult:
        """The row that is kept of it."""
        check, result = self.check, UNANSWERED
        if self.result is not None:
            result = "held" if self.result.passed else FAILED[self.result.severity]
        return RecordedResult(at, check.stream, check.table.name, check.name, result, self.observed)


def evaluate_all(
    settings: Settings, checks: Iterable[StreamCheck], now: datetime
) -> list[Evaluation]:
    """Evaluate each check; one that crashes does not keep the others from being evaluated."""
    evaluations = []
    for check in checks:
        try:
            evaluations.append(Evaluation(check, check.evaluate(settings, now)))
        except Exception as error:
            evaluations.append(Evaluation(check, None, f"{type(error).__name__}: {error}"))
    return evaluations


def record(settings: Settings, results: Sequence[RecordedResult]) -> None:
    """Append the results in one commit."""
    if not results:
        return
    lake = settings.lake()
    create_table(lake, CHECK_RESULTS)
    path = lake.path(CHECK_RESULTS)
    rows = [
        {
            "at": r.at,
            "stream": r.stream,
            "table": r.table,
            "claim": r.check,
            "result": r.result,
            "sentence": r.observed,
            "answered": r.result != UNANSWERED,
        }
        for r in results
    ]
    with commit_lock(path):
        write_deltalake(
            delta_table(path),
            rows_of(CHECK_RESULTS, rows),
            mode="append",
            commit_properties=commit_properties({}),
        )
        table = delta_table(path)
        if len(table.file_uris()) > FILES_BEFORE_COMPACTING:
            table.optimize.compact()


def newest_results(settings: Settings, newest: int) -> list[RecordedResult]:
    """The newest results of each check, at most so many, oldest first."""
    lake = settings.lake()
    if not lake.exists(CHECK_RESULTS):
        return []
    rows = query(NEWEST, {"results": open_table(lake, CHECK_RESULTS)}, {"newest": newest})
    return [_recorded(row) for row in rows]


def _recorded(row: dict[str, Any]) -> RecordedResult:
    texts = (str(row[name]) for name in ("stream", "table", "claim", "result", "sentence"))
    return RecordedResult(row["at"].astimezone(UTC), *texts)
