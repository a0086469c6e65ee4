"""Days restored to what they were before a reprocessing: without a JVM, but for large ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from rivermark.backfill.affected_days import Changed, affected_days
from rivermark.backfill.comparison import compare, compare_on_spark
from rivermark.backfill.difference import Difference
from rivermark.backfill.pending import add_pending, hours_merged, open_causes, resolve_pending
from rivermark.backfill.publish import (
    check_replaceable,
    effects_on_sinks,
    publish_days,
    version_of,
)
from rivermark.backfill.recompute import tell_lineage
from rivermark.backfill.registry import account, newest_records, register
from rivermark.backfill.result import Reprocessing, TableOutcome
from rivermark.backfill.staging import ordered_rows
from rivermark.lake.archive import new_id
from rivermark.lake.day_predicates import condition, in_days
from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.log import Commit, CommitLog
from rivermark.lake.rows_in_files import StagedRows
from rivermark.lake.time_travel import oldest_readable, readable
from rivermark.model.errors import RivermarkError, VersionNotAvailable
from rivermark.model.stream import Ingest, Output, Stream
from rivermark.model.table import Table, days_between
from rivermark.model.time import FIRST
from rivermark.runtime.spark.input_size import DRIVER_BYTES
from rivermark.settings import Settings

if TYPE_CHECKING:
    from rivermark.model.rows import Rows


@dataclass(frozen=True)
class Replacement:
    """A commit by which a reprocessing replaced days of a table."""

    output: Output
    commit: Commit
    before: int
    first: date
    last: date

    @property
    def table(self) -> Table:
        """The table of the output."""
        return self.output.table


def undo(
    settings: Settings,
    stream: Stream,
    name: str,
    *,
    run_id: str,
    spark: Callable[[], SparkSession] = SparkSession.builder.getOrCreate,
) -> Reprocessing:
    """Restore the rows that its days had before a reprocessing; rows of other days stay.

    Not the whole table is restored, because streams have appended to later days since. Days that
    the reprocessing computed from changed inputs are pending afterwards, for the next merge of late
    rows, unless the undo itself is undone. Raises RivermarkError where the days were changed again
    since, VersionNotAvailable where the version before can no longer be read.
    """
    check_replaceable(stream)
    started = time.monotonic()
    lake = settings.lake()
    with days_lock(lake.path(stream.tables[0])):
        made = [r for o in stream.outputs if (r := replacement(lake, stream, o, name)) is not None]
        if not made:
            raise RivermarkError(_unknown(lake, stream, name))
        for each in made:
            check_undoable(lake, stream, each, spark)
        now = datetime.now(UTC)
        done = Reprocessing(
            id=new_id(now),
            kind="undone",
            stream=stream.name,
            first=made[0].first,
            last=made[0].last,
            at=now,
            run_id=run_id,
            by=account(),
            inputs={each.table.name: each.before for each in made},
            because=name,
        )
        if pending := pending_days_after(lake, stream, made):
            add_pending(lake, done.id, {stream.name: pending}, run_id)
        for each in made:
            _restore(lake, stream, done, each, spark)
        if name in open_causes(lake):
            resolve_pending(lake, [name], None, run_id)
        done.seconds = round(time.monotonic() - started, 3)
    register(lake, done.records())
    tell_lineage(settings, stream, done)
    return done


def pending_days_after(lake: Lake, stream: Stream, made: Sequence[Replacement]) -> set[date]:
    """Days whose inputs have other rows than what is restored was made of.

    All of a reprocessing that followed from another cause; of one that was ordered by hand, those
    into which late rows were merged since the days were computed before it.
    """
    days: set[date] = set()
    for each in made:
        if each.commit.metadata.get("kind") == "undone":
            continue
        range_of = set(days_between(each.first, each.last))
        if each.commit.metadata.get("because"):
            return range_of
        earlier = last_replacement(lake, each, before=each.commit.version)
        since = earlier.at if earlier is not None else FIRST
        merged = {
            read.admitted.name: Changed.in_hours(hours_merged(lake, read.name, since))
            for read in (*stream.reads, *stream.static)
            if isinstance(read, Ingest)
        }
        days |= range_of & affected_days(stream, merged)
    return days


def replacement(lake: Lake, stream: Stream, output: Output, name: str) -> Replacement | None:
    """The effect of a reprocessing on a table, as its commit says; None where it had none."""
    table = output.table
    if not lake.exists(table):
        return None
    log = CommitLog(lake.path(table))
    # The register knows where to look; a log of months is searched only where it does not.
    known = (r for r in newest_records(lake, stream.name, 1000) if r.id == name)
    hint = next((r.version_after for r in known if r.table == table.name), None)
    commit = log.read(hint) if hint is not None else None
    if commit is None or commit.metadata.get("reprocessing") != name:
        version = version_of(lake, table, name)
        commit = log.read(version) if version is not None else None
    if commit is None:
        return None
    first, last = (date.fromisoformat(day) for day in commit.metadata["recompute"])
    return Replacement(output, commit, int(commit.metadata["before"]), first, last)


def check_undoable(
    lake: Lake, stream: Stream, made: Replacement, spark: Callable[[], SparkSession]
) -> None:
    """Refuse where days changed since the reprocessing, or the version before it is gone."""
    table, path = made.table, lake.path(made.table)
    if made.output.updates_rows:
        raise RivermarkError(
            f"table '{table.name}' keeps the latest row of each key, and merged rows cannot be "
            "taken out again; reprocess its days instead"
        )
    if not readable(lake, table, made.before):
        raise VersionNotAvailable(
            f"version {made.before} of table '{table.name}', which held the days before, is no "
            f"longer readable; the oldest is {oldest_readable(lake, table)}. Recompute the days "
            f"instead: rivermark reprocess {stream.name} --from {made.first} --to {made.last}"
        )
    since = _compared(spark, path, made.commit.version, None, made)
    if since.same:
        return
    days = ", ".join(day.isoformat() for day in since.days_that_differ()[:5])
    later = last_replacement(lake, made, after=made.commit.version)
    if later is not None and later.metadata.get("reprocessing"):
        who = str(later.metadata["reprocessing"])
        advice = f"by {who}; undo that first: rivermark reprocess {stream.name} --undo {who}"
    elif later is not None:
        advice = f"by run {later.metadata.get('run')} (version {later.version}); recompute them"
    else:
        advice = "by new rows; recompute them instead"
    raise RivermarkError(
        f"table '{table.name}': its days {days} have been changed since {since.sentence()}, "
        f"{advice}"
    )


def last_replacement(
    lake: Lake, made: Replacement, *, after: int = -1, before: int | None = None
) -> Commit | None:
    """The newest commit between those versions that replaced days of the same range."""
    for commit in CommitLog(lake.path(made.table)).backwards():
        if before is not None and commit.version >= before:
            continue
        if commit.version <= after:
            return None
        days = commit.metadata.get("recompute")
        if isinstance(days, list) and len(days) == 2:
            first, last = (date.fromisoformat(str(day)) for day in days)
            if first <= made.last and last >= made.first:
                return commit
    return None


def _restore(
    lake: Lake,
    stream: Stream,
    done: Reprocessing,
    made: Replacement,
    spark: Callable[[], SparkSession],
) -> None:
    table, path = made.table, lake.path(made.table)
    now = int(delta_table(path).version())
    difference = _compared(spark, path, now, made.before, made)
    sinks = effects_on_sinks(made.output)
    done.tables[table.name] = TableOutcome(table.name, now, difference, sinks=sinks)
    days = days_between(made.first, made.last)
    before, own = dataset_of(delta_table(path, version=made.before)), in_days(table, days)
    rows: Rows
    if before.size(own) <= DRIVER_BYTES:
        rows = ordered_rows(before, table, days)
    else:
        frame = read_delta(spark(), path, made.before).where(condition(table, days))
        names = table.schema.fieldNames()
        rows = StagedRows(before.near(own).filter(own), frame.select(*names))
    publish_days(lake, stream, made.output, rows, days, done)


def _compared(
    spark: Callable[[], SparkSession], path: str, before: int, after: int | None, made: Replacement
) -> Difference:
    """The days of one version beside those of another: by Spark where there are many rows."""
    table, first, last = made.table, made.first, made.last
    old, new = (dataset_of(delta_table(path, version=version)) for version in (before, after))
    days = in_days(table, days_between(first, last))
    if max(old.size(days), new.size(days)) <= DRIVER_BYTES:
        return compare(old, new, table, first, last)
    was, now = (read_delta(spark(), path, version) for version in (before, after))
    return compare_on_spark(was, now, table, first, last)


def _unknown(lake: Lake, stream: Stream, name: str) -> str:
    """The reason why an id cannot be undone."""
    records = {r.id: r for r in newest_records(lake, stream.name, 1000)}
    if name in records and records[name].version_after is None:
        return f"{name} was {records[name].kind}: it replaced nothing, so there is nothing to undo"
    if name in records:
        return (
            f"{name} is older than what the log of '{records[name].table}' still holds; recompute "
            f"its days: rivermark reprocess {stream.name} --from {records[name].first_day} --to "
            f"{records[name].last_day}"
        )
    known = [r.id for r in records.values() if r.version_after is not None][:5]
    newest = f"the newest: {', '.join(known)}" if known else "there is none"
    return f"'{stream.name}' was never reprocessed as {name!r}; {newest}"
