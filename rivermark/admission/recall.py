"""How far event time had come when the stream was last running."""

from __future__ import annotations

from datetime import UTC, datetime

from deltalake import DeltaTable

from rivermark.admission.clock import Clock
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.stream import Ingest


def recall_clock(lake: Lake, ingest: Ingest, before: int | None = None) -> Clock:
    """The clock that the newest raw commit left (or the newest before batch `before`).

    It lies in the commit's metadata. Where the log no longer shows one, the admitted table's own
    statistics tell the newest event time.
    """
    for commit in CommitLog(lake.path(ingest.raw)).backwards():
        kept = commit.metadata
        if "clock" in kept and (before is None or int(kept["batch"]) < before):
            return Clock.from_json(kept["clock"])
    return Clock(newest_admitted(lake, ingest))


def newest_admitted(lake: Lake, ingest: Ingest) -> datetime | None:
    """The newest event time by the statistics of the admitted table's files; None when it is empty."""
    if not lake.exists(ingest.admitted):
        return None
    import pyarrow as pa

    actions = pa.table(DeltaTable(lake.path(ingest.admitted)).get_add_actions(flatten=True))
    name = f"max.{ingest.contract.event_time}"
    if name not in actions.column_names:
        return None
    found = [t for t in actions[name].to_pylist() if t is not None]
    return max(found).astimezone(UTC) if found else None
