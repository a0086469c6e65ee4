"""The rules of a stream's suites, evaluated on empty tables: whether they can be at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import duckdb

from rivermark.lake.schema import arrow_schema
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import SuiteRule
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import suite_connection
from rivermark.quality.duckdb_sql import BATCH, search_of
from rivermark.quality.errors import Unanswered
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.suites import suites_of

MISSING: Final = re.compile(r'Referenced column "([^"]+)" not found')


def suite_faults(stream: AnyStream) -> Iterator[DeclarationError]:
    """Each rule that cannot be evaluated, with the reason."""
    for table, suite in suites_of(stream):
        place = place_of(_declared(stream, table)) or place_of(stream)
        rows = arrow_schema(table.schema).empty_table()
        with suite_connection({BATCH: rows}) as duck:
            for rule in suite.rules:
                try:
                    if isinstance(rule.question, OfGreatExpectations):
                        check_as_it_is(rule, rule.question)
                    elif (search := search_of(rule, rows.schema)) is not None:
                        duck.execute(f"DESCRIBE {search.sql}", list(search.values) or None)
                except (RivermarkError, duckdb.Error) as error:
                    yield DeclarationError(
                        f"rule '{rule.name}' of the suite of '{table.name}' cannot be evaluated: "
                        f"{_reason(error, table)}"
                    ).at(place)


def check_as_it_is(rule: SuiteRule, question: OfGreatExpectations) -> None:
    """Refuse what Great Expectations does not know, or not with these arguments."""
    with main_module_with_a_file():
        # Great Expectations takes seconds to import.
        from rivermark.quality.gx.own_expectations import as_it_is

        as_it_is(rule, question)


def _reason(error: Exception, table: Table) -> str:
    """The message of DuckDB, with the nearest column of one that the table lacks."""
    reason = error.reason if isinstance(error, Unanswered) else str(error).splitlines()[0]
    missing = MISSING.search(reason)
    if missing is None:
        return reason
    columns = table.schema.fieldNames()
    near = did_you_mean(missing[1], columns) or ";"
    return f"there is no column '{missing[1]}'{near} the table has {', '.join(columns)}"


def _declared(stream: AnyStream, table: Table) -> Suite | None:
    if isinstance(stream, Ingest):
        return stream.suite
    return stream.output(table).suite or stream.suite
