"""Suites in the JSON of Great Expectations, as `ExpectationSuite.to_json_dict` has it.

Great Expectations itself is not imported.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rivermark.lake.arrow_types import arrow_schema
from rivermark.model.errors import DeclarationError
from rivermark.model.question import (
    Between,
    Columns,
    Matches,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OfGreatExpectations,
    OneOf,
    Ordered,
    RowCount,
    Unique,
    UsualRows,
)
from rivermark.model.rule import SuiteRule
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.imported_suite import RULE_KEY
from rivermark.quality.spark_condition import spark_condition
from rivermark.quality.volume_profile import SPARK, usual_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from rivermark.model.suite import Suite


def to_great_expectations(suite: Suite, schema: StructType) -> dict[str, Any]:
    """The suite of a table as a JSON object, as `ExpectationSuite(**...)` takes it.

    Conditions are written in the SQL of Spark, and queries are those of DuckDB as they stand;
    limits that Great Expectations has only as floats are floats.

    Args:
        suite: The suite, as `rivermark.quality.suites.suite_of` returns it.
        schema: That of its table.

    Raises:
        SuiteDoesNotFit: A condition does not fit the columns, or has no equal in Spark's SQL.
    """
    columns = arrow_schema(schema)
    expectations = []
    for rule in suite.rules:
        kind, kwargs = exported(rule, columns)
        expectations.append(
            {
                "type": kind,
                "kwargs": {name: _json(value) for name, value in kwargs.items()},
                "description": rule.name,
                "severity": rule.severity,
                "meta": {RULE_KEY: rule.name},
            }
        )
    meta = {"great_expectations_version": version("great_expectations")}
    return {"name": suite.name, "expectations": expectations, "meta": meta}


def exported(rule: SuiteRule, columns: pa.Schema) -> tuple[str, dict[str, Any]]:
    """The type of the expectation that asks the same as a rule, and its arguments."""
    kind, kwargs = _equal(rule, columns)
    share = {"mostly": rule.at_least} if rule.at_least < 1.0 else {}
    return kind, kwargs | share


def _equal(rule: SuiteRule, columns: pa.Schema) -> tuple[str, dict[str, Any]]:
    match rule.question:
        case Columns(names):
            kwargs: dict[str, Any] = {"column_set": list(names), "exact_match": True}
            return "expect_table_columns_to_match_set", kwargs
        case RowCount(low, high):
            return "expect_table_row_count_to_be_between", _given(min_value=low, max_value=high)
        case NotNull(column):
            return "expect_column_values_to_not_be_null", {"column": column}
        case Unique((column,)):
            return "expect_column_values_to_be_unique", {"column": column}
        case Unique(names):
            kwargs = {"column_list": list(names), "ignore_row_if": "any_value_is_missing"}
            return "expect_compound_columns_to_be_unique", kwargs
        case Between(column, first, last, high_excluded):
            kwargs = {"column": column, **_given(min_value=_shown(first), max_value=_shown(last))}
            strict = {"strict_max": True} if high_excluded else {}
            return "expect_column_values_to_be_between", kwargs | strict
        case OneOf(column, values):
            kwargs = {"column": column, "value_set": list(values)}
            return "expect_column_values_to_be_in_set", kwargs
        case Matches(column, pattern):
            kwargs = {"column": column, "regex": rf"\A(?:{pattern})\z"}
            return "expect_column_values_to_match_regex", kwargs
        case Ordered(first_column, second, strictly):
            kwargs = {"column_A": second, "column_B": first_column, "or_equal": not strictly}
            kwargs["ignore_row_if"] = "either_value_is_missing"
            return "expect_column_pair_values_a_to_be_greater_than_b", kwargs
        case OfGreatExpectations(kind):
            return kind, rule.question.kwargs
        case NoRowsWhere(text, at_most):
            failing = f"coalesce({_of_spark(rule, text, columns)}, true)"
            condition = {"type": "pass_through", "pass_through_filter": failing}
            kwargs = {"max_value": at_most, "row_condition": condition}
            return "expect_table_row_count_to_be_between", kwargs
        case NoRowsFrom(query):
            return "unexpected_rows_expectation", {"unexpected_rows_query": query}
        case UsualRows(column):
            is_date = pa.types.is_date(columns.field(column).type)
            query = usual_rows(rule.question, SPARK, is_date=is_date)
            return "unexpected_rows_expectation", {"unexpected_rows_query": query}


def _of_spark(rule: SuiteRule, text: str, columns: pa.Schema) -> str:
    try:
        return spark_condition(text, columns)
    except DeclarationError as error:
        raise SuiteDoesNotFit(str(error), rule=rule.name) from None


def _given(**kwargs: Any) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if value is not None}


def _shown(limit: object) -> object:
    return float(limit) if isinstance(limit, Decimal) else limit


def _json(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else value
