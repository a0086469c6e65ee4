"""Every published and every admitted table has a suite, and each of its rules can fail."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pytest

from assets.topology import TOPOLOGY
from rivermark.model.question import (
    Columns,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    RowCount,
    Unique,
    UsualRows,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.stream import Ingest
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.suites import suites_of
from tests.unit.quality.planted import HOUR, NOON, a_row, arrow_schema, faulty_rows

SUITES = [(table, suite) for stream in TOPOLOGY.streams for table, suite in suites_of(stream)]
TRIP_QUALITY = "taxi/trip_quality"


def test_every_published_and_every_admitted_table_has_one() -> None:
    wanted = {
        table.name
        for stream in TOPOLOGY.streams
        for table in ((stream.admitted,) if isinstance(stream, Ingest) else stream.tables)
    }

    assert {table.name for table, _ in SUITES} == wanted


@pytest.mark.parametrize(("table", "suite"), SUITES, ids=lambda v: getattr(v, "name", None))
def test_it_asks_for_columns_keys_time_and_the_usual_number(table: Table, suite: Suite) -> None:
    asked = [rule.question for rule in suite.rules]

    assert Columns(tuple(table.schema.fieldNames())) in asked
    assert any(isinstance(a, RowCount) for a in asked)
    if table.keys:
        assert any(isinstance(a, Unique) and set(a.columns) == set(table.keys) for a in asked)
    if table.event_time:
        assert NotNull(table.event_time) in asked
    if table.days:
        assert UsualRows(table.days.column, table.days.zone) in asked
    assert {rule.severity for rule in suite.rules} >= {"critical"}


@pytest.mark.parametrize(("table", "suite"), SUITES, ids=lambda v: getattr(v, "name", None))
def test_each_of_its_rules_finds_a_planted_fault_and_lets_a_good_row_pass(
    table: Table, suite: Suite
) -> None:
    faults = pa.concat_tables([faulty_rows(table.schema, 400), planted(table)])
    faults = faults.append_column("of_nobody", pa.nulls(faults.num_rows, pa.string()))

    bad = DuckDbEvaluator(faults, table, 0).evaluate(suite)
    good = DuckDbEvaluator(good_row(table), table, 0).evaluate(suite)

    assert [r.name for r in bad.results if r.passed and r.name not in ROWS_ARE_COUNTED] == []
    # A condition that every row breaks says nothing either.
    conditions = {r.name for r in suite.rules if isinstance(r.question, NoRowsWhere)}
    broken_by_all = [
        r.name for r in bad.results if r.name in conditions and r.unexpected_count == bad.rows
    ]
    assert broken_by_all == []
    searches = {r.name for r in suite.rules if isinstance(r.question, NoRowsFrom | UsualRows)}
    assert [r.name for r in good.failures if r.name in searches] == []


def test_no_rows_at_all_are_a_fault_of_a_table_that_may_not_be_empty() -> None:
    [(table, suite)] = [(t, s) for t, s in SUITES if t.name == TRIP_QUALITY]

    none = DuckDbEvaluator(good_row(table).slice(0, 0), table, 0).evaluate(suite)

    assert "there are rows" in [r.name for r in none.failures]


def good_row(table: Table) -> pa.Table:
    """One row whose times are in order."""
    names = table.schema.fieldNames()
    good = {c: NOON for c in names if c in (table.event_time, "event_time", "window_start")}
    good |= {c: NOON + HOUR for c in names if c in ("window_end", "_ingested_at")}
    return pa.Table.from_pylist([a_row(table.schema, **good)], schema=arrow_schema(table.schema))


ROWS_ARE_COUNTED = ("there are rows", "rows are counted")


def planted(table: Table) -> pa.Table:
    """Faults that need many rows: an odd day, and a rule whose share jumps."""
    rows: list[dict[str, Any]] = []
    if table.days is not None:
        rows += odd_day(table)
    if table.name == TRIP_QUALITY:
        rows += jump(table)
    return pa.Table.from_pylist(rows, schema=arrow_schema(table.schema))


def odd_day(table: Table) -> list[dict[str, Any]]:
    """Eight weeks of 30 rows a day; a Tuesday of 3; a day that is not over."""
    assert table.days is not None
    column = table.days.column
    is_date = table.schema[column].dataType.typeName() == "date"
    found = []
    for n in range(58):
        day = NOON.date() + timedelta(days=n)
        at: date = day if is_date else NOON + timedelta(days=n)
        found += [a_row(table.schema, **{column: at})] * (3 if n == 50 else 30)
    return found


def jump(table: Table) -> list[dict[str, Any]]:
    """A rule that nothing broke in March, and half of the records in April."""
    return [
        a_row(
            table.schema,
            service="yellow",
            rule="no_passengers",
            local_day=date(2026, month, 2),
            broken=broken,
            good=200 - broken,
        )
        for month, broken in ((3, 0), (4, 100))
    ]


def test_the_jump_is_what_finds_the_jump() -> None:
    [(table, suite)] = [(t, s) for t, s in SUITES if t.name == TRIP_QUALITY]
    rule = next(r for r in suite.rules if "jumps" in r.name)
    rows = pa.Table.from_pylist(jump(table), schema=arrow_schema(table.schema))

    found = DuckDbEvaluator(rows, table, 0).evaluate(only(rule, suite))

    assert [(r.name, r.unexpected_count) for r in found.failures] == [(rule.name, 1)]


def only(rule: SuiteRule, suite: Suite) -> Suite:
    return Suite(suite.name, ((rule,),))
