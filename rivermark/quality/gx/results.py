"""Results of Great Expectations read back: the numbers, examples, or the crash that they hide."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.types import StructType, TimestampType

from rivermark.model.check import CheckResult, Example
from rivermark.model.question import (
    NoRowsFrom,
    NoRowsWhere,
    OfGreatExpectations,
    RowCount,
    UsualRows,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.quality.errors import CheckCrashed
from rivermark.quality.result import (
    result_as_observed,
    result_of_row_count,
    result_of_rows,
    result_of_search,
)

LONGEST_EXAMPLE: Final = 200
"""Characters of a value that are shown; a payload of megabytes would make a page unusable."""

WITHHELD: Final = "withheld: the table has personal columns"
"""What is shown in place of a value or a message."""

SPARK_ERROR_CLASS: Final = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")


def crash_of(
    rule: SuiteRule, exception_info: Mapping[str, Any], *, withhold: bool
) -> CheckCrashed | None:
    """What Great Expectations caught: it stores exceptions as failures of the data.

    With `withhold` only the class of the error is shown, since Spark's messages quote values.
    """
    for caught in _caught(exception_info):
        message = str(caught.get("exception_message") or "no message")
        if withhold:
            named = SPARK_ERROR_CLASS.search(message)
            message = f"{named[0] if named else 'message'} {WITHHELD}"
        return CheckCrashed(_first_line(message), rule=rule.name)
    return None


def _caught(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    # One exception lies in the mapping itself, those of metrics in one mapping for each metric.
    for one in (info,) if "raised_exception" in info else info.values():
        if one.get("raised_exception"):
            yield one


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), message)


def read_result(rule: SuiteRule, *, passed: bool, numbers: Mapping[str, Any]) -> CheckResult:
    """The result of a rule, from the `result` of an expectation in the format BASIC."""
    match rule.question:
        case RowCount():
            return result_of_row_count(rule, numbers["observed_value"], passed=passed)
        case NoRowsWhere() | NoRowsFrom() | UsualRows():
            return result_of_search(rule, numbers["observed_value"], passed=passed)
        case OfGreatExpectations() if "element_count" not in numbers:
            observed = numbers.get("observed_value", "no number")
            return result_as_observed(rule, str(observed)[:LONGEST_EXAMPLE], passed=passed)
        case _:
            evaluated = numbers["element_count"] - numbers.get("missing_count", 0)
            unexpected = numbers["unexpected_count"]
            return result_of_rows(rule, evaluated=evaluated, unexpected=unexpected, passed=passed)


def without_values(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The counts and shares of a result of Great Expectations, without what it observed."""
    counts = {n: v for n, v in numbers.items() if isinstance(v, int | float)}
    return counts | ({"observed_value": WITHHELD} if "observed_value" in numbers else {})


def read_examples(
    rule: SuiteRule, values: Sequence[Any], schema: StructType
) -> tuple[Example, ...]:
    """Failing values by column; instants, which Spark returns in the process's zone, in UTC."""
    columns = columns_of(rule.question)
    examples = []
    for value in values:
        if isinstance(value, Mapping):
            by_column: Mapping[str, Any] = value
        elif len(columns) == 1:
            by_column = {columns[0]: value}
        else:
            # The pair was compared as "second is greater", so it comes back the other way round.
            by_column = dict(zip(reversed(columns), value, strict=True))
        examples.append(as_example({c: by_column[c] for c in columns}, schema))
    return tuple(examples)


def as_example(row: Mapping[str, Any], schema: StructType) -> Example:
    """A row as text, column by column."""
    instants = {f.name for f in schema.fields if isinstance(f.dataType, TimestampType)}
    return {
        name: _as_text(value, instant=name in instants)[:LONGEST_EXAMPLE]
        for name, value in row.items()
    }


def shown_on_pages(texts: Sequence[str]) -> list[str]:
    """Examples as the pages need them: their templates would run a value that is a script."""
    return [html.escape(text) for text in texts]


def _as_text(value: Any, *, instant: bool) -> str:
    if instant and isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(" ").replace("+00:00", " UTC")
    return str(value)
