"""What was answered to each claim, kept as a table, so that a page can show how it went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import BooleanType, StringType, StructField, StructType, TimestampType

from rivermark.lake.commit_metadata import noted
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import opened
from rivermark.lake.sql import ask
from rivermark.lake.system_tables import rows_of
from rivermark.model.table import Table
from rivermark.monitor.checks.check import Answer, Claim
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
    description="One row a claim and look: held, warn or error, and the answer in words.",
    event_time="at",
)
FILES_BEFORE_COMPACTING: Final = 200
"""A look a quarter hour for two days; then its files become one."""

NEWEST: Final = """
SELECT * FROM results
QUALIFY row_number() OVER (PARTITION BY stream, "table", claim ORDER BY "at" DESC) <= $looks
ORDER BY stream, "table", claim, "at"
"""


@dataclass(frozen=True)
class Look:
    """One answer to a claim; `result` is 'held', 'warn', 'error', or 'unanswered'."""

    at: datetime
    stream: str
    table: str
    claim: str
    result: str
    sentence: str

    @property
    def held(self) -> bool:
        """Whether the claim held."""
        return self.result == "held"


@dataclass(frozen=True)
class Asked:
    """A claim, and its answer or why there is none."""

    claim: Claim
    answer: Answer | None
    problem: str = ""

    def look(self, at: datetime) -> Look:
        """What is kept of it."""
        claim, answer = self.claim, self.answer
        result = "unanswered"
        if answer is not None:
            result = "held" if answer.holds else answer.severity or claim.severity
        told = answer.sentence if answer else self.problem
        return Look(at, claim.stream, claim.table.name, claim.name, result, told)


def ask_all(settings: Settings, claims: Iterable[Claim], now: datetime) -> list[Asked]:
    """Ask each claim; one that cannot be answered keeps none of the others from it."""
    found = []
    for claim in claims:
        try:
            found.append(Asked(claim, claim.ask(settings, now)))
        except Exception as error:
            found.append(Asked(claim, None, f"{type(error).__name__}: {error}"))
    return found


def record(settings: Settings, looks: Sequence[Look]) -> None:
    """Append the answers in one commit."""
    if not looks:
        return
    lake = settings.lake()
    create_table(lake, CHECK_RESULTS)
    path = lake.path(CHECK_RESULTS)
    rows = [{**vars(found), "answered": found.result != "unanswered"} for found in looks]
    with commit_lock(path):
        write_deltalake(
            path, rows_of(CHECK_RESULTS, rows), mode="append", commit_properties=noted({})
        )
        table = DeltaTable(path)
        if len(table.file_uris()) > FILES_BEFORE_COMPACTING:
            table.optimize.compact()


def newest_looks(settings: Settings, looks: int) -> list[Look]:
    """The newest answers to each claim, oldest first, so many at most."""
    lake = settings.lake()
    if not lake.exists(CHECK_RESULTS):
        return []
    rows = opened(lake, CHECK_RESULTS)
    return [_look(row) for row in ask(NEWEST, {"results": rows}, {"looks": looks})]


def _look(row: dict[str, Any]) -> Look:
    told = (str(row[name]) for name in ("stream", "table", "claim", "result", "sentence"))
    return Look(row["at"].astimezone(UTC), *told)
