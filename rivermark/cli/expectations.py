"""`rivermark expectations`: the suite of a table in the JSON of Great Expectations."""

from __future__ import annotations

from rivermark.cli.arguments import TableName
from rivermark.cli.console import print_json
from rivermark.cli.deployment import topology
from rivermark.model.errors import RivermarkError
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.suites import suites_of


def expectations(table: TableName) -> None:
    """Print the suite of a table as JSON that Great Expectations reads.

    With the rules that the declarations of table and stream imply. Conditions are in the SQL of
    Spark. The other way round: `rivermark.quality.from_great_expectations`.

    JSON:
        name, expectations (type, kwargs, description, severity, meta), meta

    Examples:
        rivermark expectations taxi/trips > trips.json
    """
    declared = topology()
    stream = declared.writer(declared.table(table))
    suites = {of.name: suite for of, suite in suites_of(stream)} if stream else {}
    if table not in suites:
        raise RivermarkError(
            f"'{table}' has no suite: published and admitted tables have; there are: "
            f"{', '.join(sorted(suites))}"
        )
    print_json(to_great_expectations(suites[table], declared.table(table).schema))
