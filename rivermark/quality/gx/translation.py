"""Rules in the terms of Great Expectations: one expectation of theirs for each rule of ours.

Importing this module imports Great Expectations, which takes seconds: only `SparkEvaluator` does.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any

import great_expectations.expectations as gxe
from great_expectations.core import ExpectationSuite
from great_expectations.exceptions import ExpectationNotFoundError
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.metrics.map_metric_provider import (
    ColumnMapMetricProvider,
    column_condition_partial,
)
from great_expectations.expectations.registry import (
    get_expectation_impl,
    list_registered_expectation_implementations,
)
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark.lake.sql import spark_quoted
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import (
    Between,
    Columns,
    NoRowsFrom,
    NoRowsWhere,
    OfGreatExpectations,
    OneOf,
    UsualRows,
)
from rivermark.model.rule import SuiteRule
from rivermark.quality.column_kind import ColumnKind, kinds_of_spark
from rivermark.quality.condition_sql import EPOCH
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.exported_suite import exported
from rivermark.quality.fitting import fitted
from rivermark.quality.imported_suite import RULE_KEY

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


class ColumnValuesHold(ColumnMapMetricProvider):
    """Values for which a piece of SQL is true, beside the kinds of conditions that are built in."""

    condition_metric_name = "column_values.hold"
    condition_value_keys = ("holds",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column: Column, holds: str, **_: object) -> Column:  # noqa: N805
        return F.expr(holds)


class ExpectExactColumnValuesToBeBetween(gxe.ExpectColumnValuesToBeBetween):
    """That of Great Expectations, by SQL: its own makes a float of every number.

    Under a name of its own, since Great Expectations finds classes by their names and evaluates
    suites that a team already has by those that it comes with.
    """

    holds: str
    map_metric = "column_values.hold"
    success_keys = ("holds", "mostly")  # type: ignore[assignment]


class ExpectExactColumnValuesToBeInSet(gxe.ExpectColumnValuesToBeInSet):
    """Likewise: values as exact numbers of the column's type."""

    holds: str
    map_metric = "column_values.hold"
    success_keys = ("holds", "mostly")


def translate(name: str, rules: Sequence[SuiteRule], schema: StructType) -> ExpectationSuite:
    """The suite that Great Expectations runs.

    Raises:
        SuiteDoesNotFit: A column is missing, or its type cannot be compared with the limit.
    """
    columns = kinds_of_spark(schema)
    try:
        expectations = [_expectation(fitted(rule, columns), columns) for rule in rules]
    except SuiteDoesNotFit as error:
        raise error.of_suite(name) from None
    return ExpectationSuite(name=name.replace("/", "."), expectations=expectations)


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
        # Results come in an order of their own.
        "meta": {RULE_KEY: rule.name},
        "description": html.escape(shown),
        "severity": FailureSeverity(rule.severity),
    }


def _expectation(rule: SuiteRule, columns: Mapping[str, ColumnKind]) -> Expectation:
    if isinstance(rule.question, OfGreatExpectations):
        return as_it_is(rule, rule.question)
    about = _about(rule)
    kind, kwargs = exported(rule, columns)
    match rule.question:
        case Columns(names):
            # Great Expectations counts the fields inside of a column as columns.
            nested = (n for name in names if name in columns for n in _fields(name, columns[name]))
            kwargs["column_set"] += nested
        case Between(column):
            # The limits of the arguments are shown only; those that count are in the SQL.
            holds = _in_range(rule.question, columns[column])
            return ExpectExactColumnValuesToBeBetween(**kwargs, holds=holds, **about)
        case OneOf(column, values):
            listed = ", ".join(_literal(value, columns[column]) for value in values)
            holds = f"{_compared(column, columns[column])} IN ({listed})"
            kwargs["value_set"] = [str(value) for value in values]
            return ExpectExactColumnValuesToBeInSet(**kwargs, holds=holds, **about)
        case NoRowsFrom() | UsualRows():
            # Rows are only counted, but fetched: of values that Python cannot hold that would fail.
            query = kwargs["unexpected_rows_query"]
            rows = f"SELECT 1 AS failing FROM ({query}) AS failing_rows"  # noqa: S608
            kwargs["unexpected_rows_query"] = rows
    return get_expectation_impl(kind)(**kwargs, **about)


def as_it_is(rule: SuiteRule, question: OfGreatExpectations) -> Expectation:
    """The expectation that Great Expectations alone evaluates.

    Raises:
        SuiteDoesNotFit: Its module cannot be imported, or it is not known, or does not take its
            arguments.
    """
    try:
        if question.module is not None:
            import_module(question.module)
    except Exception as error:
        reason = f"module '{question.module}' of {question.type} cannot be imported: {error}"
        raise SuiteDoesNotFit(reason, rule=rule.name) from error
    try:
        return get_expectation_impl(question.type)(**question.kwargs, **_about(rule))
    except ExpectationNotFoundError:
        near = did_you_mean(question.type, list_registered_expectation_implementations())
        if question.module is None:
            reason = (
                f"Great Expectations knows no '{question.type}'{near or ';'} give the module that "
                "defines it: from_great_expectations(..., module='...')"
            )
        else:
            reason = (
                f"neither Great Expectations nor module '{question.module}' defines "
                f"'{question.type}'{near}"
            )
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        reason = f"{question.type} does not take {question.arguments}: {why}"
    raise SuiteDoesNotFit(reason, rule=rule.name)


def _fields(name: str, kind: ColumnKind) -> Iterator[str]:
    for inner, kind_of_inner in kind.fields.items():
        yield f"{name}.{inner}"
        yield from _fields(f"{name}.{inner}", kind_of_inner)


def _in_range(range_: Between, kind: ColumnKind) -> str:
    name = _compared(range_.column, kind)
    limits = ((range_.low, ">="), (range_.high, "<" if range_.high_excluded else "<="))
    parts = [
        f"{name} {sign} {_literal(limit, kind)}" for limit, sign in limits if limit is not None
    ]
    if kind.family == "float":
        # Not-a-number is above every number in the order of SQL, and in no range of ours.
        parts.append(f"NOT isnan({name})")
    return " AND ".join(parts)


def _compared(column: str, kind: ColumnKind) -> str:
    name = spark_quoted(column)
    return f"CAST({name} AS DOUBLE)" if kind.family == "float" else name


def _literal(value: object, kind: ColumnKind) -> str:
    """A value as the column's type holds it, in the SQL of Spark."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"CAST('{value}' AS BIGINT)"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL({kind.digits},{kind.scale}))"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case datetime():
            return f"timestamp_micros({(value - EPOCH) // timedelta(microseconds=1)})"
        case date():
            return f"DATE '{value}'"
    # Read as it is, whatever signs are in it.
    return f"decode(unhex('{str(value).encode().hex()}'), 'UTF-8')"
