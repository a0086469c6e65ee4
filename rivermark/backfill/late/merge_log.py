"""Merges of late rows on record: what was started, and what each ingest got."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from rivermark.backfill.affected_days import DaysByStream
from rivermark.backfill.pending import OPEN, State, append_events, events, resolution
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.snapshot import opened
from rivermark.model.stream import Ingest


@dataclass(frozen=True, kw_only=True)
class StartedMerge:
    """A merge into one ingest: the version of its late table that is read, and the hours (UTC).

    `table_id` is the admitted table's own id: a table created again has late rows of its own.
    """

    merge: str
    stream: str
    table_id: str
    late_version: int
    hours: tuple[datetime, ...]


@dataclass(frozen=True)
class MergeResult:
    """Rows that a merge added to an ingest's admitted table, and between which versions of it.

    No late row of batches up to `merged_through` is left.
    """

    stream: str
    table_id: str
    rows: int
    money: Decimal | None
    version_before: int
    version_after: int
    merged_through: int


def table_id(lake: Lake, ingest: Ingest) -> str:
    """The admitted table's own id."""
    return str(opened(lake, ingest.admitted).metadata().id)


def record_start(lake: Lake, merges: Iterable[StartedMerge], run_id: str) -> None:
    """Record what is about to be merged."""
    rows = []
    for each in merges:
        values = {**vars(each), "hours": list(each.hours), "state": State.MERGE_STARTED}
        rows.append({"fold": values.pop("merge"), **values})
    append_events(lake, run_id, rows)


def record_finish(
    lake: Lake,
    merge: str,
    results: Sequence[MergeResult],
    causes: Iterable[str],
    left: tuple[str, DaysByStream],
    run_id: str,
) -> None:
    """Record in one commit the results, that these causes are resolved, and the days left."""
    rows: list[dict[str, Any]] = []
    rows += [_result_row(each, merge) for each in results]
    superseding = {"fold": merge, "state": State.PENDING_OF_ALL_MERGES, "owed": []}
    append_events(lake, run_id, [*resolution({merge, *causes}, left), *rows, superseding])


def _result_row(result: MergeResult, cause: str) -> dict[str, Any]:
    values = {**vars(result), "fold": cause, "state": State.MERGE_RESULT}
    return {"settled_through": values.pop("merged_through"), **values}


def interrupted_merges(lake: Lake) -> set[str]:
    """Merges that were started and not finished."""
    rows = events(lake, f"SELECT fold FROM events WHERE state = 'begun' AND {OPEN}")  # noqa: S608
    return {row["fold"] for row in rows}


def merged_through(lake: Lake, ingest: Ingest) -> int:
    """The batch up to which every late row is known to be merged; -1 for none."""
    newest = _of_ingest(lake, ingest, 'arg_max(settled_through, "at")')
    return -1 if newest is None else int(newest)


def expect_unmerged(lake: Lake, ingest: Ingest, first: int, cause: str, run_id: str) -> None:
    """Record that late rows of batches from `first` on may be unmerged, whatever was known."""
    through = min(merged_through(lake, ingest), first - 1)
    id_, version = table_id(lake, ingest), int(delta_table(lake.path(ingest.admitted)).version())
    result = MergeResult(ingest.name, id_, 0, None, version, version, through)
    append_events(lake, run_id, [_result_row(result, cause)])


def rows_merged(lake: Lake, ingest: Ingest) -> int:
    """Number of late rows merged into the ingest's table, by what was recorded."""
    return int(_of_ingest(lake, ingest, "sum(rows)") or 0)


def _of_ingest(lake: Lake, ingest: Ingest, aggregate: str) -> Any:
    if not lake.exists(ingest.admitted):
        return None
    rows = events(
        lake,
        f"SELECT {aggregate} AS value FROM events"  # noqa: S608 - one of two constants
        " WHERE state = 'done' AND stream = ? AND table_id = ?",
        [ingest.name, table_id(lake, ingest)],
    )
    return rows[0]["value"] if rows else None
