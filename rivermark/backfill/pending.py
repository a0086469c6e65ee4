"""Days that have to be recomputed, written down until they are: a kill at any moment is finished.

Every entry has a cause, a reprocessing or a merge of late rows, and is written before the first row
of the cause moves. Entries of a cause are resolved in one commit: their days are recomputed, or
belong to another cause now. A merge that was started and not finished counts as a cause too: the
days that follow from its hours are pending.

On disk this is `ops/folds`, which also holds the results of merges (`late/merge_log.py`). Its state
names are those of the first version: lakes that it wrote stay readable, and it reads those of now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from rivermark.backfill.affected_days import Changed, DaysByStream, all_affected_days
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.lake.system_tables import append_rows
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology

PENDING_AND_MERGES: Final = Table(
    name="ops/folds",
    schema=(
        "fold string, at timestamp, run string, state string, stream string, table_id string,"
        " late_version long, hours array<timestamp>, rows long, money decimal(38,9),"
        " version_before long, version_after long, settled_through long,"
        " owed array<struct<stream: string, day: date>>"
    ),
    description="Merges of late rows with their results, and days that have to be recomputed.",
    event_time="at",
)
"""`fold` is the cause, `owed` its days, `settled_through` the last batch without unmerged rows."""


class State(StrEnum):
    """State of a cause, as a row of the table says it."""

    MERGE_STARTED = "begun"
    MERGE_RESULT = "done"
    PENDING = "owes"
    RESOLVED = "over"
    PENDING_OF_ALL_MERGES = "owed"
    """A list by the first version, in force until a newer one; only empty ones are written now."""


OPEN: Final = "fold NOT IN (SELECT fold FROM events WHERE state = 'over')"


def add_pending(lake: Lake, cause: str, days: DaysByStream, run_id: str) -> None:
    """Record the days that follow from a cause, before the first of them is recomputed."""
    create_table(lake, PENDING_AND_MERGES)
    append_events(lake, run_id, [_entry(cause, days)])


def resolve_pending(
    lake: Lake, causes: Iterable[str], left: tuple[str, DaysByStream] | None, run_id: str
) -> None:
    """Record in one commit that the days of these causes are resolved, but for those `left`.

    `left` are a new cause and its days.
    """
    append_events(lake, run_id, resolution(causes, left))


def resolution(
    causes: Iterable[str], left: tuple[str, DaysByStream] | None
) -> list[dict[str, Any]]:
    """The rows that `resolve_pending` appends."""
    resolved = [{"fold": cause, "state": State.RESOLVED} for cause in sorted(set(causes))]
    return [*resolved, _entry(*left)] if left and left[1] else resolved


def open_causes(lake: Lake) -> set[str]:
    """Causes whose days are not all resolved."""
    rows = events(lake, f"SELECT fold FROM events WHERE state IN ('owes', 'begun') AND {OPEN}")  # noqa: S608
    return {row["fold"] for row in rows}


def hours_merged(lake: Lake, ingest: str, since: datetime) -> list[datetime]:
    """The hours (UTC) into which late rows of an ingest were merged since a moment."""
    rows = events(
        lake,
        "SELECT hours FROM events WHERE state = 'begun' AND stream = ? AND \"at\" >= ?",
        [ingest, since],
    )
    return [hour.astimezone(UTC) for row in rows for hour in row["hours"]]


def pending_days(lake: Lake, topology: Topology) -> DaysByStream:
    """Days, by stream, that follow from a merge or a reprocessing and were not recomputed since.

    They were open then, or the merge or reprocessing was interrupted.
    """
    rows = events(
        lake,
        "(SELECT owed FROM events WHERE state = 'owed' ORDER BY \"at\" DESC LIMIT 1) UNION ALL"  # noqa: S608
        f" SELECT owed FROM events WHERE state = 'owes' AND {OPEN}",
    )
    pending: DaysByStream = {}
    for entry in (entry for row in rows for entry in row["owed"] or ()):
        pending.setdefault(entry["stream"], set()).add(entry["day"])
    for stream, days in all_affected_days(
        topology, _changed_by_interrupted(lake, topology)
    ).items():
        pending.setdefault(stream, set()).update(days)
    return pending


def _changed_by_interrupted(lake: Lake, topology: Topology) -> dict[str, Changed]:
    """Changes that merges may have made which were started and not finished."""
    changed: dict[str, Changed] = {}
    ingests = {s.name: s for s in topology.streams if isinstance(s, Ingest)}
    for row in events(lake, f"SELECT stream, hours FROM events WHERE state = 'begun' AND {OPEN}"):  # noqa: S608
        if row["stream"] in ingests:
            table = ingests[row["stream"]].admitted.name
            hours = Changed.in_hours(hour.astimezone(UTC) for hour in row["hours"])
            changed[table] = changed.get(table, Changed()) | hours
    return changed


def events(lake: Lake, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
    """The answer of a query over `events`, the rows of the table; none before the first."""
    if not lake.exists(PENDING_AND_MERGES):
        return []
    return query(sql, {"events": open_table(lake, PENDING_AND_MERGES)}, values)


def append_events(lake: Lake, run_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows in one commit, with the run and the time."""
    now = datetime.now(UTC)
    stamped = [{"at": now, "run": run_id, **row} for row in rows]
    append_rows(lake, PENDING_AND_MERGES, stamped, {"run": run_id})


def _entry(cause: str, days: DaysByStream) -> dict[str, Any]:
    listed = [{"stream": s, "day": day} for s in sorted(days) for day in sorted(days[s])]
    return {"fold": cause, "state": State.PENDING, "owed": listed}
