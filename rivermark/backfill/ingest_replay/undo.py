"""Rows of an ingest as they were before a replacement: of its replay, or of a file read again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Final

from rivermark.backfill.context import BackfillContext
from rivermark.backfill.difference import Difference
from rivermark.backfill.downstream import DownstreamResult
from rivermark.backfill.ingest_replay.decisions import Decisions, compare_decisions
from rivermark.backfill.ingest_replay.in_place import (
    Replacement,
    alone,
    interrupted,
    outcomes_of,
    put_in_place,
)
from rivermark.backfill.ingest_replay.scope import Engine, Scope
from rivermark.backfill.publish import version_of
from rivermark.backfill.registry import newest_records
from rivermark.backfill.result import Reprocessing
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.lake import Lake
from rivermark.lake.log import Commit, CommitLog
from rivermark.lake.time_travel import oldest_readable, readable
from rivermark.model.errors import RivermarkError, VersionNotAvailable
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

RESTORED: Final = "SELECT * FROM {rows} WHERE {scope}"


def undo_replacement(
    context: BackfillContext, ingest: Ingest, name: str
) -> tuple[Reprocessing | None, DownstreamResult]:
    """Put back the rows that a replacement took; closed days downstream follow.

    Late rows that were merged meanwhile are merged by the next merge again. Raises RivermarkError
    for an id that replaced nothing of the ingest, and where its rows were changed again since;
    VersionNotAvailable where the version before can no longer be read.
    """
    lake = context.lake
    with alone(lake):
        commits = _commits_of(lake, ingest, name)
        kept = max(commits.values(), key=lambda commit: commit.at).metadata
        if kept["kind"] == "undone":
            raise RivermarkError(
                f"{name} is an undo; to restore what {kept['because']} had replaced, run that "
                "replacement again"
            )
        scope, order = Scope(*kept["scope"]), ["undo", name]
        before: dict[str, int] = {table.name: kept["tables"][table.name] for table in commits}
        _check_readable(lake, ingest, commits, before, int(kept["ledger"]))
        left = {t: c for t, c in commits.items() if not _is_undone(lake, ingest, t, c)}
        earlier = interrupted(lake, ingest, order)
        if not left and earlier is None:
            raise RivermarkError(f"{name} has already been undone")
        made = Decisions(ingest, {t.name: commit.version for t, commit in left.items()})
        since = compare_decisions(context, made, Decisions(ingest), scope)
        if since.rows:
            raise RivermarkError(
                f"{since.rows:,} rows of '{ingest.name}' that {name} replaced have been "
                "changed since; replay their days instead: rivermark replay-ingest"
            )
        changes = compare_decisions(context, Decisions(ingest), Decisions(ingest, before), scope)
        names = _names(ingest)
        differences = {ingest.raw: Difference(), **changes.by_table(ingest)}
        return put_in_place(
            context,
            Replacement(
                ingest=ingest,
                order=order,
                scope=scope,
                queries={t: partial(_restored, names[t], scope) for t in left},
                reads={names[table]: (table, before[table.name]) for table in commits},
                differences={table: differences[table] for table in commits},
                days=_days_of(lake, ingest, name),
                ledger=outcomes_of(lake, ingest, scope, int(kept["ledger"])),
                kind="undone",
                because=name,
                earlier=earlier,
            ),
        )


def _names(ingest: Ingest) -> dict[Table, str]:
    """The names of the tables in queries, in the order in which they are put back."""
    return {
        ingest.quarantine: "quarantined_rows",
        ingest.versions: "admitted_rows",
        ingest.late: "late_rows",
        ingest.raw: "raw_rows",
    }


def _restored(rows: str, scope: Scope, engine: Engine) -> str:
    return RESTORED.format(rows=rows, scope=scope.sql(spark=engine.on_spark))


def _commits_of(lake: Lake, ingest: Ingest, name: str) -> dict[Table, Commit]:
    """The newest commit of that id in each table that has one."""
    versions = {table: version_of(lake, table, name) for table in _names(ingest)}
    commits = {
        table: CommitLog(lake.path(table)).read(version)
        for table, version in versions.items()
        if version is not None
    }
    present = {table: commit for table, commit in commits.items() if commit is not None}
    if present:
        return present
    known = dict.fromkeys(r.id for r in newest_records(lake, ingest.name, 1000))
    listed = f"the newest: {', '.join([*known][:5])}" if known else "there is none"
    raise RivermarkError(f"no rows of '{ingest.name}' were replaced as {name!r}; {listed}")


def _check_readable(
    lake: Lake, ingest: Ingest, commits: Mapping[Table, Commit], before: dict[str, int], ledger: int
) -> None:
    needed = [(t, v) for t, c in commits.items() for v in (before[t.name], c.version)]
    for table, version in [*needed, (INGEST_FILES, ledger)]:
        if not readable(lake, table, version):
            raise VersionNotAvailable(
                f"version {version} of table '{table.name}', which is needed, is no longer "
                f"readable; the oldest is {oldest_readable(lake, table)}. Replay the days of "
                f"'{ingest.name}' instead: rivermark replay-ingest"
            )


def _is_undone(lake: Lake, ingest: Ingest, table: Table, made: Commit) -> bool:
    """True if a commit was undone in its table. Raises RivermarkError where another is upon it."""
    first, last, file = made.metadata["scope"]
    for commit in CommitLog(lake.path(table)).backwards():
        if commit.version <= made.version:
            return False
        if "scope" not in commit.metadata:
            continue
        if commit.metadata.get("because") == made.metadata["reprocessing"]:
            return True
        others = commit.metadata["scope"]
        if others[0] <= last and others[1] >= first and (others[2] or file) == (file or others[2]):
            who = commit.metadata["reprocessing"]
            raise RivermarkError(
                f"rows of '{ingest.name}' were replaced again by {who}; undo that first: "
                f"rivermark replay-ingest {ingest.name} --undo {who}"
            )
    return False


def _days_of(lake: Lake, ingest: Ingest, name: str) -> tuple[date, date] | None:
    records = (r for r in newest_records(lake, ingest.name, 1000) if r.id == name)
    return next(((r.first_day, r.last_day) for r in records), None)
