"""Results of Great Expectations read back: the numbers, a sample, or the crash that they hide."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Row
from pyspark.sql.types import StructType, TimestampType

from rivermark.model.question import (
    Columns,
    Given,
    NoRowsFrom,
    NoRowsWhere,
    RowCount,
    Unique,
    UsualRows,
    columns_asked,
)
from rivermark.model.rule import Rule, in_rows, percent
from rivermark.quality.errors import CheckCrashed
from rivermark.quality.result import ExpectationResult

LONGEST_SAMPLE: Final = 200
"""Characters of a value that are shown; a payload of megabytes would make a page unusable."""

SPARK_ERROR_CLASS: Final = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")


def refuse_crash(rule: Rule, exception_info: Mapping[str, Any], *, withhold: bool) -> None:
    """Raise what Great Expectations caught: it stores exceptions as failures of the data.

    With `withhold` only the class of the error is told, since Spark's messages quote values.
    """
    for caught in _caught(exception_info):
        message = str(caught.get("exception_message") or "no message")
        if withhold:
            found = SPARK_ERROR_CLASS.search(message)
            message = f"{found[0] if found else 'message'} withheld: the table has personal columns"
        raise CheckCrashed(f"rule '{rule.name}' could not be evaluated: {_first_line(message)}")


def _caught(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    # One exception lies in the mapping itself, those of metrics in one mapping for each metric.
    for one in (info,) if "raised_exception" in info else info.values():
        if one.get("raised_exception"):
            yield one


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), message)


def read_result(rule: Rule, *, success: bool, numbers: Mapping[str, Any]) -> ExpectationResult:
    """The answer to a rule, from the `result` of an expectation in the format BASIC."""
    answer = ExpectationResult(
        name=rule.name,
        severity=rule.severity,
        passed=success,
        observed="",
        bound=rule.bound,
    )
    observed: Any = numbers.get("observed_value")
    match rule.asks:
        case Columns():
            wrong = numbers.get("details", {}).get("mismatched", {})
            parts = [f"{how}: {', '.join(names)}" for how, names in sorted(wrong.items())]
            return replace(answer, observed="; ".join(parts) or "as declared")
        case RowCount():
            return replace(answer, observed=in_rows(observed))
        case UsualRows():
            days = f"{observed:,} {'day' if observed == 1 else 'days'}"
            return replace(answer, observed=days, unexpected_count=observed)
        case NoRowsWhere() | NoRowsFrom():
            return replace(answer, observed=in_rows(observed), unexpected_count=observed)
        case _:
            looked_at = numbers["element_count"] - numbers.get("missing_count", 0)
            bad = numbers["unexpected_count"]
            return replace(
                answer,
                observed=_in_numbers(rule, bad, looked_at),
                unexpected_count=bad,
                looked_at=looked_at,
            )


def not_judged(rule: Rule, *, passed: bool) -> ExpectationResult:
    """The answer of a rule of rows where there are no rows: it has nothing to say of any."""
    return ExpectationResult(
        name=rule.name,
        severity=rule.severity,
        passed=passed,
        observed="0 rows looked at",
        bound=rule.bound,
        looked_at=0,
    )


def _in_numbers(rule: Rule, bad: int, looked_at: int) -> str:
    if not looked_at:
        return "0 values looked at"
    share = percent(bad / looked_at)
    if isinstance(rule.asks, Given):
        return f"{bad:,} of {looked_at:,} empty ({share})"
    if isinstance(rule.asks, Unique):
        return f"{bad:,} of {looked_at:,} repeated ({share})"
    return f"{bad:,} of {looked_at:,} do not ({share}), {looked_at - bad:,} do"


def read_sample(rule: Rule, values: list[Any], schema: StructType) -> tuple[str, ...]:
    """Offending values as text; instants, which Spark hands over in the process's zone, in UTC."""
    columns = columns_asked(rule.asks)
    instants = _instants(schema)
    sample = []
    for value in values:
        by_column = _by_column(columns, value)
        texts = {c: _as_text(by_column[c], instant=c in instants) for c in columns}
        shown = [f"{c}={t}" for c, t in texts.items()] if len(texts) > 1 else texts.values()
        sample.append(", ".join(shown)[:LONGEST_SAMPLE])
    return tuple(sample)


def _by_column(columns: tuple[str, ...], value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if len(columns) == 1:
        return {columns[0]: value}
    # A pair was asked whether its second is the greater, so it comes back the other way round.
    return dict(zip(reversed(columns), value, strict=True))


def read_row(row: Row, schema: StructType) -> str:
    """A row that was found, as text, column by column."""
    shown = ", ".join(
        f"{c}={_as_text(v, instant=c in _instants(schema))}" for c, v in row.asDict().items()
    )
    return shown[:LONGEST_SAMPLE]


def shown_on_pages(sample: tuple[str, ...]) -> list[str]:
    """The sample as the pages need it: their templates would run a value that is a script."""
    return [html.escape(text) for text in sample]


def _instants(schema: StructType) -> set[str]:
    return {f.name for f in schema.fields if isinstance(f.dataType, TimestampType)}


def _as_text(value: Any, *, instant: bool) -> str:
    if instant and isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(" ").replace("+00:00", " UTC")
    return str(value)
