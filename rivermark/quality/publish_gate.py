"""Rows are audited before they are published: those of a bounded run, by their critical rules.

Write, audit, publish. What a batch (or a recompute of days) is about to commit is evaluated first
by the rules that its rows alone can break: values not null, in range, in their set, in order, no
row under a forbidden condition, and keys that occur once, in these rows and in the table as it
would be. If any such rule of severity critical is broken, nothing of any table of the stream is
committed; the rows are kept for `rivermark show TABLE --refused`, and the run fails.

Shares and counts of the whole table, and queries over it, are left out: in the middle of a run they
would depend on how its input is cut into batches. The check after the run evaluates those.

The audit keeps no state: a process that is killed between audit and commit audits again when it
starts. A live stream is not held up; its checks report it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.model.question import (
    NoRowsFrom,
    NoRowsWhere,
    OfGreatExpectations,
    Unique,
    UsualRows,
)
from rivermark.model.rule import SuiteRule, in_rows
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import suite_connection
from rivermark.quality.duckdb_sql import BATCH, count_by_rule, on_days, reason_of
from rivermark.quality.errors import CheckCrashed, PublicationBlocked, SuiteDoesNotFit
from rivermark.quality.suites import suite_of

if TYPE_CHECKING:
    from pyarrow import dataset

    from rivermark.model.stream import Stream

    Rows: TypeAlias = pa.Table | dataset.Dataset

logger = logging.getLogger(__name__)

PUBLISHED: Final = "published"


def audit(
    lake: Lake,
    stream: Stream,
    staged: Sequence[tuple[Table, Rows]],
    *,
    instead_of: Collection[date] = (),
) -> None:
    """Let the rows pass, or keep them for inspection.

    `instead_of` are days whose rows in the table these replace. Broken rules of severity warning
    are logged, and reported by the check after the run.

    A rule of either that cannot be evaluated refuses the rows too, since nothing is known of it.

    Raises:
        PublicationBlocked: Rows break critical rules, or a rule could not be evaluated.
    """
    blocked: dict[str, str] = {}
    errors: set[SuiteRule] = set()
    for table, rows in staged:
        broken, unanswered = broken_rules(lake, stream, table, rows, instead_of=instead_of)
        for rule, count in broken.items():
            if rule.severity == "warning":
                logger.warning("%s: %s are published all the same", table.name, _by(rule, count))
        critical = [_by(r, count) for r, count in broken.items() if r.severity == "critical"]
        errors |= unanswered.keys()
        critical += map(str, unanswered.values())
        if critical:
            keep(lake, table, rows)
            blocked[table.name] = "; ".join(critical)
        else:
            forget(lake, table)
    if blocked:
        what = "critical rules" if not errors else "critical rules, or rules that have no answer,"
        reasons = " and of ".join(f"'{table}': {broken}" for table, broken in blocked.items())
        raise PublicationBlocked(
            f"stream '{stream.name}': nothing was published, since rows break {what} of {reasons}."
            f" See them: rivermark show {next(iter(blocked))} --refused. Then correct "
            "the stream's code (or, where the rows are right, its suite) and run again: the same "
            "input is read again"
        )


def broken_rules(
    lake: Lake,
    stream: Stream,
    table: Table,
    rows: Rows,
    *,
    instead_of: Collection[date] = (),
) -> tuple[dict[SuiteRule, int], dict[SuiteRule, CheckCrashed]]:
    """The rules of severity critical or warning that rows alone break, with how many rows do.

    And those of them that cannot be evaluated, with the reason.
    """
    suite = suite_of(stream, table)
    if suite is None:
        return {}, {}
    rules = [r for r in suite.rules if r.severity != "info" and _of_rows(r)]
    unanswered: dict[SuiteRule, CheckCrashed] = {}
    answering = partial(_answering, unanswered, table, suite)
    published = dataset_of(delta_table(lake.path(table)))
    with suite_connection({BATCH: rows, PUBLISHED: published}) as duck:
        total, counted = count_by_rule(
            rules,
            rows.schema,
            lambda select, values, _: _query(duck, f"SELECT {select} FROM {BATCH}", values)[0],  # noqa: S608
            answering,
        )
        if not total:
            return {}, unanswered
        broken = {rule: breaks for rule, (_, breaks) in counted.items() if breaks}
        for rule in rules:
            if isinstance(rule.question, Unique) and not merged_by(
                stream, table, rule.question.columns
            ):
                with answering(rule):
                    repeated = _repeated(duck, table, rule.question.columns, instead_of)
                    broken |= {rule: repeated} if repeated else {}
        return broken, unanswered


@contextmanager
def _answering(
    unanswered: dict[SuiteRule, CheckCrashed], table: Table, suite: Suite, rule: SuiteRule
) -> Iterator[None]:
    """Take down why a rule could not be evaluated, and go on with the others."""
    try:
        yield
    except SuiteDoesNotFit as error:
        unanswered[rule] = CheckCrashed(error.reason, suite=suite.name, rule=rule.name)
    except duckdb.Error as error:
        reason = reason_of(error, table)
        unanswered[rule] = CheckCrashed(reason, suite=suite.name, rule=rule.name)


def merged_by(stream: Stream, table: Table, columns: Sequence[str]) -> bool:
    """Returns True if the table keeps one row for each value of the columns, whatever comes in."""
    return stream.output(table).updates_rows and set(table.keys) <= set(columns)


def keep(lake: Lake, table: Table, rows: Rows) -> None:
    """Keep refused rows for inspection; they replace older ones."""
    names = table.schema.fieldNames()
    chosen = (
        rows.select(names)
        if isinstance(rows, pa.Table)
        else rows.scanner(columns=names).to_reader()
    )
    write_deltalake(lake.staged(table), chosen, mode="overwrite", schema_mode="overwrite")


def forget(lake: Lake, table: Table) -> None:
    """Remove rows that were refused before: the rows that replace them have passed."""
    store, path = filesystem(lake.staged(table))
    if store.get_file_info(path).type.name == "Directory":
        store.delete_dir(path)


def _of_rows(rule: SuiteRule) -> bool:
    """Returns True if some rows alone break the rule, whatever other rows there are."""
    if isinstance(rule.question, NoRowsFrom | UsualRows | OfGreatExpectations):
        return False
    return rule.at_least == 1.0 and not (
        isinstance(rule.question, NoRowsWhere) and rule.question.at_most > 0
    )


def _repeated(
    duck: duckdb.DuckDBPyConnection,
    table: Table,
    columns: Sequence[str],
    instead_of: Collection[date],
) -> int:
    """Rows whose keys occur again among them, or in a row of the table that is not replaced."""
    keys = ", ".join(quoted(c) for c in columns)
    not_null = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns)
    [(within,)] = _query(
        duck,
        f"SELECT coalesce(sum(n), 0)::BIGINT FROM (SELECT count(*) AS n FROM {BATCH} "  # noqa: S608
        f"WHERE {not_null} GROUP BY {keys} HAVING count(*) > 1)",
    )
    if within:
        return int(within)
    # The smallest and largest keys, so that the statistics of the table's files exclude most.
    ends = ", ".join(f"min({quoted(c)}), max({quoted(c)})" for c in columns)
    [bounds] = _query(duck, f"SELECT {ends} FROM {BATCH} WHERE {not_null}")  # noqa: S608
    if any(value is None for value in bounds):
        return 0
    near = " AND ".join(f"{quoted(c)} BETWEEN ? AND ?" for c in columns)
    stays = f"AND NOT ({on_days(table, instead_of)})" if instead_of else ""
    [(beside,)] = _query(
        duck,
        f"SELECT count(*) FROM {BATCH} WHERE ({keys}) IN "  # noqa: S608
        f"(SELECT ({keys}) FROM {PUBLISHED} WHERE {near} {stays})",
        bounds,
    )
    return int(beside)


def _query(duck: duckdb.DuckDBPyConnection, sql: str, values: Sequence[object] = ()) -> list[Any]:
    return duck.execute(sql, list(values) or None).fetchall()


def _by(rule: SuiteRule, rows: int) -> str:
    return f"'{rule.name}' by {in_rows(rows)}"
