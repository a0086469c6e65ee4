"""Every fault of a stream's declaration, as errors that are collected and not raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import duckdb

from rivermark.ingest.parse.contract_parser import contract_faults
from rivermark.ingest.parse.expressions import expression_faults
from rivermark.lake.arrow_types import arrow_schema
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import SuiteRule
from rivermark.model.stream import NO_MARGIN, AnyStream, Ingest, Stream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.process.spark import ProcessBuild
from rivermark.quality.duckdb_evaluator import suite_connection
from rivermark.quality.duckdb_sql import BATCH, search_of
from rivermark.quality.errors import Unanswered
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.suites import suites_of
from rivermark.runtime.preflight.builds import EmptyInputs, build_faults

Faults = Iterator[DeclarationError]


def faults_without_spark(stream: AnyStream) -> Faults:
    """Faults of a stream's suites, its rules and readers in SQL, and its margin."""
    yield from suite_faults(stream)
    if isinstance(stream, Ingest):
        yield from contract_faults(stream.name, stream.contract)
    else:
        yield from _timer_faults(stream)


def faults_of(stream: AnyStream, inputs: EmptyInputs) -> Faults:
    """Faults that Spark finds in a stream's expressions and build, on empty tables."""
    if isinstance(stream, Ingest):
        yield from expression_faults(inputs.spark, stream.name, stream.contract)
    else:
        yield from build_faults(stream, inputs)


def _timer_faults(stream: Stream) -> Iterator[DeclarationError]:
    """A process with timers in event time, in a stream that says nothing of its margin.

    One that handles timers and says whether its events wait for them has such.
    """
    build = stream.build
    if not isinstance(build, ProcessBuild) or stream.margin is not NO_MARGIN or not stream.days:
        return
    process = type(build.make())
    is_library = process.on_timer.__module__.startswith("rivermark.")
    if process.declaration.has_on_timer and process.declaration.decided and not is_library:
        yield DeclarationError(
            f"stream '{stream.name}': process '{process.__name__}' sets timers in event time, so "
            "results may lie beyond the day of their events; declare as `margin` how long after "
            "an event its last result may come, or timedelta(0) where that is the same day"
        ).at(place_of(stream))


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
