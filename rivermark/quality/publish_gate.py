"""Rows are looked at before they are published: those of a bounded run, for their critical rules.

Write, audit, publish. What a batch (or a recompute of days) is about to commit is asked first what
the rows can answer by themselves: values given, in range, in their set, in order, no row under a
forbidden condition, and keys that occur once, in these rows and in the table as it would be. If
any such rule of severity critical is broken, nothing of any table of the stream is committed; the
rows are kept where `rivermark show TABLE --refused` finds them, and the run fails.

Not asked are shares and counts of the whole table, and queries over it: in the middle of a run they
would depend on how its input is cut into batches. The check after the run answers those.

Nothing is remembered: a process that is killed between audit and commit audits again when it
starts. A live stream is not held up; its checks tell of it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.sql import quoted
from rivermark.model.question import NoRowsFrom, NoRowsWhere, Unique, UsualRows
from rivermark.model.rule import Rule, in_rows
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import engine_with
from rivermark.quality.duckdb_sql import BATCH, condition_of, on_days
from rivermark.quality.errors import PublicationBlocked
from rivermark.quality.suites import suite_of

if TYPE_CHECKING:
    from pyarrow import dataset

    from rivermark.model.stream import Stream

    Rows: TypeAlias = pa.Table | dataset.Dataset

logger = logging.getLogger(__name__)

PUBLISHED: Final = "published"


@dataclass(frozen=True)
class Broken:
    """A rule, and how many of the rows break it."""

    rule: Rule
    rows: int


def audit(
    lake: Lake,
    stream: Stream,
    staged: Sequence[tuple[Table, Rows]],
    *,
    instead_of: Collection[date] = (),
    kept: bool = False,
) -> None:
    """Let the rows pass, or keep them aside and raise PublicationBlocked.

    `instead_of` are days whose rows in the table these take the place of. `kept` says that the rows
    lie where refused ones do already (rivermark.quality.publish_staging). Rules of severity warning
    that are broken are logged, and told by the check after the run.
    """
    blocked = []
    for table, rows in staged:
        broken = broken_rules(lake, stream, table, rows, instead_of=instead_of)
        for found in broken:
            if found.rule.severity == "warning":
                logger.warning("%s: %s are published all the same", table.name, _told(found))
        critical = [found for found in broken if found.rule.severity == "critical"]
        if critical:
            if not kept:
                keep(lake, table, rows)
            blocked.append(f"'{table.name}': {'; '.join(map(_told, critical))}")
        elif not kept:
            forget(lake, table)
    if blocked:
        first = next(iter(blocked)).split("'")[1]
        raise PublicationBlocked(
            f"stream '{stream.name}': nothing was published, since rows break critical rules of "
            f"{' and of '.join(blocked)}. See them: rivermark show {first} --refused. Then mend "
            "the stream's code (or, where the rows are right, its suite) and run again: the same "
            "input is taken again"
        )


def broken_rules(
    lake: Lake, stream: Stream, table: Table, rows: Rows, *, instead_of: Collection[date] = ()
) -> list[Broken]:
    """The rules that rows can break by themselves and do, of severity critical or warning."""
    suite = suite_of(stream, table)
    if suite is None:
        return []
    rules = [r for r in suite.rules if r.severity != "info" and _of_rows(r)]
    conditions = {r: c for r in rules if (c := condition_of(r, rows.schema)) is not None}
    parts, values = ["count(*)"], list[object]()
    for found in conditions.values():
        parts.append(
            f"count(*) FILTER (WHERE ({found.asked}) AND coalesce(({found.broken}), false))"
        )
        values += found.values
    published = DeltaTable(lake.path(table)).to_pyarrow_dataset()
    with engine_with({BATCH: rows, PUBLISHED: published}) as engine:
        [(total, *of_rules)] = _ask(engine, f"SELECT {', '.join(parts)} FROM {BATCH}", values)  # noqa: S608
        if not total:
            return []
        broken = [Broken(rule, int(n)) for rule, n in zip(conditions, of_rules, strict=True) if n]
        for rule in rules:
            if isinstance(rule.asks, Unique):
                twice = _twice(engine, table, rule.asks.columns, instead_of)
                broken += [Broken(rule, twice)] if twice else []
        return broken


def keep(lake: Lake, table: Table, rows: Rows) -> None:
    """Keep refused rows where they can be looked at; they take the place of older ones."""
    names = table.schema.fieldNames()
    chosen = (
        rows.select(names)
        if isinstance(rows, pa.Table)
        else rows.scanner(columns=names).to_reader()
    )
    write_deltalake(lake.staged(table), chosen, mode="overwrite", schema_mode="overwrite")


def forget(lake: Lake, table: Table) -> None:
    """Remove rows that were refused before: what takes their place has passed."""
    store, path = filesystem(lake.staged(table))
    if store.get_file_info(path).type.name == "Directory":
        store.delete_dir(path)


def _of_rows(rule: Rule) -> bool:
    """Whether some rows alone break the rule, whatever other rows there are."""
    if isinstance(rule.asks, NoRowsFrom | UsualRows):
        return False
    return rule.at_least == 1.0 and not (
        isinstance(rule.asks, NoRowsWhere) and rule.asks.at_most > 0
    )


def _twice(
    engine: duckdb.DuckDBPyConnection,
    table: Table,
    columns: Sequence[str],
    instead_of: Collection[date],
) -> int:
    """Rows whose keys others among them have, or a row of the table that stays beside them."""
    keys = ", ".join(quoted(c) for c in columns)
    given = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns)
    [(within,)] = _ask(
        engine,
        f"SELECT coalesce(sum(n), 0)::BIGINT FROM (SELECT count(*) AS n FROM {BATCH} "  # noqa: S608
        f"WHERE {given} GROUP BY {keys} HAVING count(*) > 1)",
    )
    if within:
        return int(within)
    # The smallest and largest keys, so that the statistics of the table's files exclude most.
    ends = ", ".join(f"min({quoted(c)}), max({quoted(c)})" for c in columns)
    [bounds] = _ask(engine, f"SELECT {ends} FROM {BATCH} WHERE {given}")  # noqa: S608
    if any(value is None for value in bounds):
        return 0
    near = " AND ".join(f"{quoted(c)} BETWEEN ? AND ?" for c in columns)
    stays = f"AND NOT ({on_days(table, instead_of)})" if instead_of else ""
    [(beside,)] = _ask(
        engine,
        f"SELECT count(*) FROM {BATCH} WHERE ({keys}) IN "  # noqa: S608
        f"(SELECT ({keys}) FROM {PUBLISHED} WHERE {near} {stays})",
        bounds,
    )
    return int(beside)


def _ask(engine: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> list[Any]:
    return engine.execute(sql, list(values) or None).fetchall()


def _told(found: Broken) -> str:
    return f"'{found.rule.name}' by {in_rows(found.rows)}"
