"""`rivermark expectations`: the suite of a table, also as Great Expectations reads it."""

from __future__ import annotations

from rivermark.cli.arguments import Home, Json, TableName
from rivermark.cli.console import grid, out, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.model.errors import RivermarkError
from rivermark.model.question import OfGreatExpectations
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.suites import suites_of


def expectations(table: TableName, as_json: Json = False, home: Home = None) -> None:
    """Show the suite of a table, with the rules that its declarations imply.

    As JSON it is a suite of Great Expectations, with conditions in the SQL of Spark. The other way
    round: `rivermark.quality.from_great_expectations`.

    JSON:
        name, expectations (type, kwargs, description, severity, meta), meta

    Examples:
        rivermark expectations taxi/trips
        rivermark expectations taxi/trips --json > trips.json
    """
    settings_for(home)
    declared = topology()
    stream = declared.writer(declared.table(table))
    suites = {of.name: suite for of, suite in suites_of(stream)} if stream else {}
    if table not in suites:
        raise RivermarkError(
            f"'{table}' has no suite, since only published and admitted tables have one; there "
            f"are: {', '.join(sorted(suites))}"
        )
    if as_json:
        print_json(to_great_expectations(suites[table], declared.table(table).schema))
        return
    rules = grid(None, ("rule", "limit", "severity", "evaluated"))
    for rule in suites[table].rules:
        only_spark = isinstance(rule.question, OfGreatExpectations)
        where = "by Great Expectations" if only_spark else "by DuckDB"
        rules.add_row(rule.name, rule.bound, rule.severity, where)
    out().print(rules)
