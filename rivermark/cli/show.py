"""`rivermark show`: rows of a table, now or as they were, without Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import typer
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.types import StructField, StructType

from rivermark.backfill.as_of import parse_version
from rivermark.cli.arguments import Home, Json, Personal, TableName
from rivermark.cli.console import cell, err, grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import row_count
from rivermark.lake.sql import query
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import RivermarkError, UnknownStream
from rivermark.model.ingest import Ingest
from rivermark.model.rule import SuiteRule
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.quality.failing_rows import about_rows, evidence_of
from rivermark.quality.result import FailingRows
from rivermark.quality.suites import suite_of

ALL = "all"


def show_bad_rows(
    lake: Lake,
    topology: Topology,
    table: Table,
    name: str,
    limit: int,
    *,
    version: str | None,
    refused: bool,
    personal: bool,
    as_json: bool,
) -> None:
    """Print rows of the table, or of those that were refused, that break rules of its suite."""
    rules = rules_named(topology, table, name)
    if refused:
        opened, source = _refused(lake, table), "refused"
    else:
        at = parse_version(version) if version else None
        chosen = resolve_version(lake, table, at)
        opened, source = delta_table(lake.path(table), version=chosen), f"version {chosen}"
    evidence = evidence_of(
        dataset_of(opened),
        table,
        rules,
        version=opened.version(),
        limit=limit,
        personal=personal,
    )
    broken = [failing for failing in evidence.failing if failing.count]
    held = len(evidence.failing) - len(broken)
    if as_json:
        rules_broken = [
            {
                "rule": each.rule,
                "count": each.count,
                "by_day": evidence.by_day.get(each.rule, {}),
                "rows": [dict(zip(each.columns, row, strict=True)) for row in each.rows],
            }
            for each in broken
        ]
        about = {"table": table.name, "source": source, "hidden": evidence.hidden, "held": held}
        print_json({**about, "rules": rules_broken})
        return
    for failing in broken:
        _print(failing)
        if days := evidence.days_of(failing, 14):
            by_day = ", ".join(f"{day} {number(n)}" for day, n in days)
            out().print(plain(f"by day: {by_day}"))
    out().print(plain(f"{table.name}, {source}: {len(broken)} rules broken, {held} hold"))
    if evidence.hidden:
        out().print(plain(f"left out as personal: {', '.join(evidence.hidden)} (--personal)"))


def rules_named(topology: Topology, table: Table, name: str) -> list[SuiteRule]:
    """The rules about rows of that name; the error of an unknown name lists them."""
    stream = topology.writer(table)
    suite = suite_of(stream, table) if stream is not None else None
    if suite is None:
        raise RivermarkError(
            f"table '{table.name}' has no suite: only published and admitted tables have one"
        )
    rules = [r for r in suite.rules if about_rows(r)]
    chosen = [r for r in rules if name in (ALL, r.name)]
    if not chosen:
        names = "; ".join(f'"{r.name}"' for r in rules)
        raise RivermarkError(f"suite '{suite.name}' has no rule {name!r} about rows: {names}")
    return chosen


def _refused(lake: Lake, table: Table) -> DeltaTable:
    try:
        return delta_table(lake.staged(table))
    except TableNotFoundError:
        raise RivermarkError(
            f"no row of '{table.name}' is refused: its last bounded run published all rows, or "
            "there has been none"
        ) from None


def _print(failing: FailingRows) -> None:
    drawn = grid(f"{failing.rule}: {number(failing.count)}", list(failing.columns))
    for row in failing.rows:
        drawn.add_row(*map(cell, row))
    out().print(drawn)


HIDDEN: Final = "…"


def show(
    table: TableName,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to show.")] = 20,
    version: Annotated[
        str | None, typer.Option(metavar="V|TIME", help="The table as it was: version or moment.")
    ] = None,
    oldest: Annotated[
        bool, typer.Option("--oldest", help="The first rows by event time, not the last.")
    ] = False,
    personal: Personal = False,
    bad: Annotated[
        str | None,
        typer.Option(
            "--bad",
            metavar="RULE",
            help="Only rows that break this rule of its suite; 'all' for every rule.",
        ),
    ] = None,
    refused: Annotated[
        bool, typer.Option("--refused", help="Rows that its last run was not allowed to publish.")
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show rows of a table, the newest by event time first.

    JSON:
        table, version, rows_total, hidden (names of personal columns), rows (one object a row);
        with --bad or --refused: table, source, hidden, held, rules (rule, count, by_day, rows)

    Examples:
        rivermark show taxi/hourly_winners
        rivermark show taxi/zone_hours --limit 5 --version 3
        rivermark show taxi/trips --bad "service is given"
        rivermark show ops/stream_progress
    """
    lake, declared = settings_for(home).lake(), topology()
    shown = table_named(declared, lake, table)
    if refused and version:
        raise typer.BadParameter(
            "refused rows have no version: give --refused or --version, not both"
        )
    if oldest and (bad is not None or refused):
        raise typer.BadParameter(
            "--oldest shows whole tables: leave it out, or leave out --bad and --refused"
        )
    if bad is not None or refused:
        show_bad_rows(
            lake,
            declared,
            shown,
            bad or ALL,
            limit,
            version=version,
            refused=refused,
            personal=personal,
            as_json=as_json,
        )
        return
    at = parse_version(version) if version else None
    chosen = resolve_version(lake, shown, at)
    with err().status(f"Reading {shown.name}"):
        rows = newest_rows(lake, shown, limit, version=chosen, oldest=oldest)
    total = row_count(lake, shown, chosen)
    hidden = () if personal else shown.personal
    closed = [() if personal else hidden_of(row, shown, declared) for row in rows]
    if as_json:
        pairs = zip(rows, closed, strict=True)
        open_rows = [{k: v for k, v in row.items() if k not in names} for row, names in pairs]
        print_json(
            {
                "table": shown.name,
                "version": chosen,
                "rows_total": total,
                "hidden": hidden,
                "rows": open_rows,
            }
        )
        return
    masked = [row | dict.fromkeys(c, HIDDEN) for row, c in zip(rows, closed, strict=True)]
    print_rows(shown, masked)
    out().print(plain(f"{number(len(rows))} of {number(total)} rows, version {chosen}"))
    if hidden:
        out().print(plain(f"hidden as personal: {', '.join(hidden)} (--personal)"))


def hidden_of(row: Mapping[str, Any], table: Table, topology: Topology) -> tuple[str, ...]:
    """The columns of a row that are not shown: the personal ones.

    The details of a quarantined row only where one of the fields that failed is personal.
    """
    fields = next(
        (
            stream.personal
            for stream in topology.streams
            if isinstance(stream, Ingest) and stream.quarantine.name == table.name
        ),
        (),
    )
    if not fields or any(f"{field}=" in (row["details"] or "") for field in fields):
        return table.personal
    return tuple(name for name in table.personal if name != "details")


def table_named(topology: Topology, lake: Lake, name: str) -> Table:
    """A declared table, or one of the platform's own below `ops/`; else UnknownStream."""
    if not name.startswith("ops/"):
        return topology.table(name)
    if not lake.exists(name):
        raise UnknownStream(f"no table is named {name!r} in {lake.root}")
    fields = StructType.fromJson(_schema(lake, name)).fields
    times = ("started_at", "at", "landed_at")
    ordered = next((f.name for f in fields if f.name in times), None)
    return Table(
        name=name,
        schema=StructType([StructField(f.name, f.dataType) for f in fields]),
        description="A table of the platform's own.",
        event_time=ordered,
    )


def newest_rows(
    lake: Lake, table: Table, limit: int, *, version: int | None = None, oldest: bool = False
) -> list[dict[str, Any]]:
    """Up to `limit` rows, by event time and then by key where the table declares them."""
    rows = dataset_of(delta_table(lake.path(table), version=version))
    order = (
        [f"{quoted(table.event_time)} {'ASC' if oldest else 'DESC'}"] if table.event_time else []
    )
    order += [quoted(key) for key in table.keys if key != table.event_time]
    columns = ", ".join(quoted(f.name) for f in table.schema.fields)
    by = f"ORDER BY {', '.join(order)}" if order else ""
    # The names are declared in code, and quoted all the same.
    return query(f"SELECT {columns} FROM rows {by} LIMIT ?", {"rows": rows}, [limit])  # noqa: S608


def print_rows(
    table: Table,
    rows: Sequence[dict[str, Any]],
    *,
    columns: Sequence[str] = (),
    title: str | None = None,
) -> None:
    """Rows as a table on the console, personal columns too; moments are UTC."""
    names = list(columns) or [f.name for f in table.schema.fields]
    numeric = {n for n in names if any(_is_number(row[n]) for row in rows)}
    drawn = grid(title, names, right=numeric)
    for row in rows:
        drawn.add_row(*(cell(row[name]) for name in names))
    out().print(drawn)


def _is_number(value: object) -> bool:
    return not isinstance(value, str | bool | datetime | list | None)


def _schema(lake: Lake, name: str) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = json.loads(delta_table(lake.path(name)).schema().to_json())
    except Exception as error:
        raise RivermarkError(f"table '{name}' cannot be read: {error}") from error
    return schema
