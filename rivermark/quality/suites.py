"""The suites of a stream: what it declares, with what the declarations of its tables already say.

Every published table and every admitted one has a suite. A rule of the suite that has the name of
one from the table's declaration takes its place, so a suite can loosen it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rivermark.model import expectations as expect
from rivermark.model.question import Unique
from rivermark.model.rule import Expectation, SuiteRule
from rivermark.model.suite import OF_ITS_TABLE, Suite
from rivermark.model.table import Table
from rivermark.quality.time_expectations import not_ahead, usual_rows

if TYPE_CHECKING:
    from rivermark.model.stream import AnyStream

FILE, ROW, ARRIVED = "_file", "_row", "_ingested_at"
"""Columns of an admitted table: where a row came from and when it was ingested."""


def suites_of(stream: AnyStream) -> tuple[tuple[Table, Suite], ...]:
    """Each published table of the stream, or the admitted one, with its whole suite."""
    contract = getattr(stream, "contract", None)
    if contract is not None:
        table = stream.tables[0]
        admission = (
            *(expect.not_null(field.name) for field in contract.fields if field.required),
            expect.unique((FILE, ROW)),
            not_ahead(contract.event_time, ARRIVED, contract.max_ahead),
            # A repeat is admitted and counted; readers of the table remove it.
            *(_unique_keys(table, "info") if table.keys else ()),
        )
        return ((table, _whole(table, stream.suite, admission)),)
    suites = []
    for place, output in enumerate(stream.outputs):  # type: ignore[union-attr]
        declared = output.suite or (stream.suite if place == 0 else None)
        once = _unique_keys(output.table, "critical") if output.table.keys else ()
        suites.append((output.table, _whole(output.table, declared, once)))
    return tuple(suites)


def suite_of(stream: AnyStream, table: Table) -> Suite | None:
    """The whole suite of one of the stream's tables; None for those that are not published."""
    return next((suite for of, suite in suites_of(stream) if of == table), None)


def _whole(table: Table, declared: Suite | None, further: tuple[Expectation, ...]) -> Suite:
    derived = [expect.columns_match(table.schema)]
    if table.event_time is not None:
        derived.append(expect.not_null(table.event_time))
    if table.days is not None:
        derived.append(_from_the_first_day(table))
        derived.append(usual_rows(table.days))
    if declared is None:
        return Suite(table.name, (*derived, *further), may_be_empty=True)
    overridden = {rule.name for rule in declared.rules} | {
        _keys_of(rule) for rule in declared.rules
    }
    added = [
        kept
        for expectation in (*derived, *further)
        if (kept := tuple(r for r in expectation if overridden.isdisjoint((r.name, _keys_of(r)))))
    ]
    name = table.name if declared.name == OF_ITS_TABLE else declared.name
    return replace(declared, name=name, expectations=(*declared.expectations, *added))


def _keys_of(rule: SuiteRule) -> frozenset[str] | str:
    """The keys that the rule says occur once, in whatever order; else its name."""
    return frozenset(rule.question.columns) if isinstance(rule.question, Unique) else rule.name


def _unique_keys(table: Table, severity: str) -> tuple[Expectation, ...]:
    """The keys occur once; whether a key may be empty is left to the declared suite."""
    keys = expect.unique(table.keys, severity=severity)  # type: ignore[arg-type]
    return (tuple(rule for rule in keys if isinstance(rule.question, Unique)),)


def _from_the_first_day(table: Table) -> tuple[SuiteRule, ...]:
    """No row lies before the first day that the table can hold."""
    daily = table.days
    assert daily is not None  # noqa: S101 - only tables that are kept by days have this rule
    first, _ = daily.bounds(daily.start, daily.start)
    low = daily.start if table.schema[daily.column].dataType.typeName() == "date" else first
    [rule, _] = expect.between(daily.column, low, severity="warning")
    return (replace(rule, name=f"{daily.column} lies in the days of the table"),)
