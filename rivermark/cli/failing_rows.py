"""`rivermark show TABLE --bad RULE`: the rows that break rules, without a JVM."""

from __future__ import annotations

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from rivermark.backfill.as_of import parse_version
from rivermark.cli.console import cell, grid, number, out, plain, print_json
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import RivermarkError
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
