"""Rules in the terms of Great Expectations: one expectation of theirs for each rule of ours.

Importing this module imports Great Expectations, which takes seconds: only `SparkEvaluator` does.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, Final

import great_expectations.expectations as gxe
from great_expectations.core import ExpectationSuite
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.row_conditions import PassThroughCondition
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

from rivermark.model.limit import Limit
from rivermark.model.question import (
    Between,
    Columns,
    Item,
    Matches,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OneOf,
    Ordered,
    RowCount,
    Unique,
    UsualRows,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.volume_profile import SPARK, usual_rows

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation
    from pyspark.sql.types import DataType

RULE_KEY: Final = "rule"
"""Where an expectation's metadata names its rule: results come in an order of their own."""


def translate(name: str, rules: Sequence[SuiteRule], schema: StructType) -> ExpectationSuite:
    """The suite that Great Expectations runs.

    Raises:
        SuiteDoesNotFit: A column is missing, or its type cannot be compared with the limit.
    """
    types = {f.name: f.dataType for f in schema.fields}
    for rule in rules:
        named = (rule.question.column,) if isinstance(rule.question, UsualRows) else ()
        missing = [c for c in (*columns_of(rule.question), *named) if c not in types]
        if missing:
            raise SuiteDoesNotFit(
                f"suite '{name}', rule '{rule.name}': the table has no column "
                f"{', '.join(missing)}; it has {', '.join(types)}"
            )
    return ExpectationSuite(
        name=name.replace("/", "."), expectations=[_expectation(rule, types) for rule in rules]
    )


def condition_with_unknown(search: NoRowsWhere) -> str:
    """The condition under which a row fails: also where an empty value leaves it undecided."""
    return f"coalesce(({search.condition}), true)"


def stand_in(rule: SuiteRule) -> Expectation:
    """What the pages show in place of a rule that could not be evaluated."""
    return gxe.UnexpectedRowsExpectation(
        unexpected_rows_query="SELECT * FROM {batch} WHERE false", **_about(rule)
    )


def _about(rule: SuiteRule) -> dict[str, Any]:
    # `description` is what the pages show; their templates do not escape it.
    shown = f"{rule.name} ({rule.bound}; {rule.severity})"
    if isinstance(rule.question, NoRowsWhere):
        shown = f"{shown}: {rule.question.condition}"
    return {
        "meta": {RULE_KEY: rule.name},
        "description": html.escape(shown),
        "severity": FailureSeverity(rule.severity),
    }


def _expectation(rule: SuiteRule, types: dict[str, DataType]) -> Expectation:
    about = _about(rule)
    match rule.question:
        case Columns(names):
            return gxe.ExpectTableColumnsToMatchSet(
                column_set=list(names), exact_match=True, **about
            )
        case RowCount(low, high):
            return gxe.ExpectTableRowCountToBeBetween(min_value=low, max_value=high, **about)
        case NotNull(column):
            return gxe.ExpectColumnValuesToNotBeNull(column=column, mostly=rule.at_least, **about)
        case Unique((column,)):
            return gxe.ExpectColumnValuesToBeUnique(column=column, **about)
        case Unique(columns):
            return gxe.ExpectCompoundColumnsToBeUnique(
                column_list=list(columns), ignore_row_if="any_value_is_missing", **about
            )
        case Between(column, low, high, high_excluded):
            kind = types[column]
            # Spark sorts not-a-number above every number: without an upper limit it would pass.
            if high is None and isinstance(kind, FloatType | DoubleType):
                high = sys.float_info.max
            return gxe.ExpectColumnValuesToBeBetween(
                column=column,
                min_value=_comparable(rule, low, kind),
                max_value=_comparable(rule, high, kind),
                strict_max=high_excluded,
                mostly=rule.at_least,
                **about,
            )
        case OneOf(column, values):
            _refuse_values(rule, values, types[column])
            return gxe.ExpectColumnValuesToBeInSet(
                column=column, value_set=list(values), mostly=rule.at_least, **about
            )
        case Matches(column, pattern):
            if not isinstance(types[column], StringType):
                raise SuiteDoesNotFit(f"rule '{rule.name}': {column} is no text")
            return gxe.ExpectColumnValuesToMatchRegex(
                column=column, regex=rf"\A(?:{pattern})\z", mostly=rule.at_least, **about
            )
        case Ordered(first, second, strictly):
            if types[first] != types[second]:
                raise SuiteDoesNotFit(f"rule '{rule.name}': {first} and {second} differ in type")
            if isinstance(types[first], StringType):
                # "9:00" comes after "10:00" there, and 10 before 9.
                raise SuiteDoesNotFit(
                    f"rule '{rule.name}': {first} and {second} have no order of numbers or times"
                )
            return gxe.ExpectColumnPairValuesAToBeGreaterThanB(
                column_A=second,
                column_B=first,
                or_equal=not strictly,
                ignore_row_if="either_value_is_missing",
                mostly=rule.at_least,
                **about,
            )
        case NoRowsWhere(_, at_most):
            return gxe.ExpectTableRowCountToBeBetween(
                max_value=at_most,
                row_condition=PassThroughCondition(
                    pass_through_filter=condition_with_unknown(rule.question)
                ),
                **about,
            )
        case UsualRows():
            query = usual_rows(
                rule.question, SPARK, is_date=isinstance(types[rule.question.column], DateType)
            )
            return gxe.UnexpectedRowsExpectation(unexpected_rows_query=query, **about)
        case NoRowsFrom(query):
            return gxe.UnexpectedRowsExpectation(unexpected_rows_query=query, **about)


def _comparable(rule: SuiteRule, limit: Limit | None, kind: DataType) -> float | date | None:
    """The limit as Spark compares it with the column, with no cast that asks for a time zone."""
    if limit is None:
        return None
    if isinstance(limit, datetime):
        if isinstance(kind, TimestampType):
            return limit
        if isinstance(kind, DateType) and limit.timetz() == time(tzinfo=UTC):
            return limit.date()
    elif isinstance(limit, date):
        if isinstance(kind, DateType):
            return limit
        if isinstance(kind, TimestampType):
            raise SuiteDoesNotFit(f"rule '{rule.name}': a day is no instant; give times as limits")
    elif isinstance(kind, NumericType):
        return float(limit)
    raise SuiteDoesNotFit(
        f"rule '{rule.name}': a column of type {kind.simpleString()} has no order with {limit!r}"
    )


def _refuse_values(rule: SuiteRule, values: Sequence[Item], kind: DataType) -> None:
    fits = {str: StringType, bool: BooleanType, int: NumericType}[type(values[0])]
    if not isinstance(kind, fits):
        raise SuiteDoesNotFit(
            f"rule '{rule.name}': a column of type {kind.simpleString()} never holds {values[0]!r}"
        )
