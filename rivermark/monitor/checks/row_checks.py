"""Checks of rows in numbers: shares of late and quarantined rows, repeated keys, dropped rows."""

from __future__ import annotations

import time
from typing import Any, Final, cast

from rivermark.backfill.late.merge_log import rows_merged
from rivermark.ingest.split_outcomes import rows_replaced
from rivermark.lake.delta import damage_named
from rivermark.lake.repeated_keys import repeated_since
from rivermark.lake.snapshot import open_table, row_count
from rivermark.lake.sql import query
from rivermark.model.check import CheckResult
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin, Sink
from rivermark.model.stream import Ingest, Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.monitor.checks.known_unique import KnownUnique
from rivermark.monitor.process_metrics import metrics_of_streams
from rivermark.runtime.batch_metrics import WITHOUT_A_DAY
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.checkpoint.undelivered import undelivered_tables
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from rivermark.sinks.comparison import compared
from rivermark.sinks.output import sinks_of
from rivermark.sinks.undelivered import waiting_in

FEW_LATE: Final = "few_rows_are_late"
FEW_QUARANTINED: Final = "few_rows_are_set_aside"
UNIQUE: Final = "rows_are_unique"
STATIC_UNIQUE: Final = "joined_tables_have_one_row_a_key"
NONE_DROPPED: Final = "no_row_is_late_downstream"
HAVE_DAYS: Final = "every_row_has_a_day"
DELIVERED: Final = "every_row_is_delivered"
EXAMPLES: Final = 10
TARGETS_HOLD: Final = "targets_hold_their_rows"
TRIES: Final = 3
"""A batch or a recompute that comes between the two counts makes them differ for a moment."""
PAUSE_SECONDS: Final = 1.0


def rows_delivered(settings: Settings, stream: Stream) -> CheckResult:
    """True if no row of the stream waits because a target outside the lake did not take it."""
    waiting = {
        table.name: rows
        for table in undelivered_tables(stream)
        if (rows := waiting_in(settings.lake(), table))
    }
    if not waiting:
        return CheckResult(name=DELIVERED, severity="warning", passed=True, observed="no row waits")
    counts = ", ".join(f"{len(rows)} in {name}" for name, rows in waiting.items())
    last = max((rows[-1] for rows in waiting.values()), key=lambda row: row["undelivered_at"])
    shown = "" if any(t.personal for t in stream.tables) else f"; the last: {last['reason']}"
    return CheckResult(
        name=DELIVERED,
        severity="warning",
        passed=False,
        observed=f"{counts} were not delivered{shown}. When they can be: rivermark dead-letters "
        f"send {stream.name}",
    )


def tells_holding(output: Output) -> bool:
    """True if any target of an output beside its table says what it holds."""
    return any(type(sink).holding is not Sink.holding for sink in sinks_of(output)[1:])


def targets_hold(settings: Settings, stream: Stream, output: Output) -> CheckResult:
    """True if each target that says what it holds has the rows of the table, but undelivered ones.

    One that cannot be asked has failed, as a warning.
    """
    generation = read_generation(settings.lake(), stream, unfinished=True)
    if generation is None:
        return CheckResult(
            name=TARGETS_HOLD, severity="critical", passed=True, observed="it has not run yet"
        )
    origin = generation.origin(stream, "checks")
    said: list[str] = []
    wrong = unanswered = False
    for sink in sinks_of(output)[1:]:
        if type(sink).holding is Sink.holding:
            continue
        try:
            is_right, sentence = _compared(settings, output, sink, origin)
        except RivermarkError as error:
            unanswered = True
            said.append(f"{sink.target} could not be asked: {error}")
            continue
        wrong |= not is_right
        said.append(sentence)
    return CheckResult(
        name=TARGETS_HOLD,
        severity="critical" if wrong else "warning",
        passed=not (wrong or unanswered),
        observed="; ".join(said)
        + (f". To write every row again: rivermark reset {stream.name}" if wrong else ""),
    )


def _compared(settings: Settings, output: Output, sink: Sink, origin: Origin) -> tuple[bool, str]:
    for _ in range(TRIES - 1):
        is_right, sentence = compared(settings.lake(), output, sink, origin)
        if is_right:
            return is_right, sentence
        time.sleep(PAUSE_SECONDS)
    return compared(settings.lake(), output, sink, origin)


def late_share(settings: Settings, ingest: Ingest) -> CheckResult:
    """Late rows of an ingest as a share of its valid ones; those merged since count as late too."""
    lake = settings.lake()
    late, admitted = row_count(lake, ingest.late), row_count(lake, ingest.admitted)
    admitted -= rows_merged(lake, ingest)
    return _share(FEW_LATE, "late", late, late + admitted, ingest.late_below)


def quarantine_share(settings: Settings, ingest: Ingest) -> CheckResult:
    """Quarantined rows of an ingest as a share of all its rows."""
    lake = settings.lake()
    quarantined, raw = row_count(lake, ingest.quarantine), row_count(lake, ingest.raw)
    quarantined -= rows_replaced(lake, ingest.name)
    rows = max(raw, quarantined)
    return _share(FEW_QUARANTINED, "quarantined", quarantined, rows, ingest.quarantine_below)


def _share(name: str, what: str, part: int, whole: int, bound: float) -> CheckResult:
    share = part / whole if whole else 0.0
    return CheckResult(
        name=name,
        severity="warning",
        passed=share <= bound,
        observed=f"{part:,} of {whole:,} rows {what} ({share:.2%}); at most {bound:.2%} may be",
        numbers={f"rows_{what}": part, "rows_looked_at": whole, "share": share, "bound": bound},
    )


def rows_unique(settings: Settings, table: Table) -> CheckResult:
    """Returns True if the table's declared keys identify its rows, which a restart must not change.

    Only rows that came since it last held are looked at, beside those that may have their keys.
    """
    lake = settings.lake()
    total, repeated = 0, list[dict[str, object]]()
    if lake.exists(table):
        rows, known = open_table(lake, table), KnownUnique(settings.state)
        with damage_named(rows):
            total = rows.count_rows()
        repeated = repeated_since(rows, lake.path(table), table, known.version(table, rows))
        if not repeated:
            known.remember(table, rows)
    surplus = sum(cast(int, row["copies"]) - 1 for row in repeated)
    # Personal keys stay in the table: the number is enough to look them up there.
    shown = [] if set(table.keys) & set(table.personal) else repeated[:EXAMPLES]
    return CheckResult(
        name=UNIQUE,
        severity="critical",
        passed=not repeated,
        observed=(
            f"{len(repeated):,} keys of ({', '.join(table.keys)}) more than once "
            f"among {total:,} rows"
        ),
        numbers={"rows": total, "rows_surplus": surplus},
        examples=tuple({k: str(v) for k, v in row.items()} for row in shown),
    )


def static_rows_unique(settings: Settings, stream: Stream) -> CheckResult:
    """Returns True if each table that the stream joins whole has one row a key."""
    tables = [t for t in map(table_of, stream.static) if t.keys]
    results = [rows_unique(settings, table) for table in tables]
    repeated = not all(r.passed for r in results)
    # A join with a lookup that was never filled finds nothing, and says nothing.
    lookups = {
        r.admitted.name for r in stream.static if isinstance(r, Ingest) and r.kind == "lookup"
    }
    empty = {
        t.name
        for t, r in zip(tables, results, strict=True)
        if t.name in lookups and not r.numbers["rows"]
    }
    return CheckResult(
        name=STATIC_UNIQUE,
        severity="critical" if repeated else "warning",
        passed=not repeated and not empty,
        observed="; ".join(
            f"{table.name}: {_never_filled(table) if table.name in empty else result.observed}"
            for table, result in zip(tables, results, strict=True)
        ),
        numbers={name: sum(r.numbers[name] for r in results) for name in ("rows", "rows_surplus")},
        examples=tuple(example for r in results for example in r.examples)[:EXAMPLES],
    )


def _never_filled(lookup: Table) -> str:
    return f"no row, so every join with it finds nothing; fill it: rivermark run {lookup.name}"


def rows_have_days(settings: Settings, stream: str) -> CheckResult:
    """True if every row that a refreshed stream read or built has a day, over all its batches.

    Its tables are written by days, so one without is in none of them.
    """
    counted = metrics_of_streams(settings).get(stream, {})
    lost = int(counted.get(WITHOUT_A_DAY, 0))
    return CheckResult(
        name=HAVE_DAYS,
        severity="critical",
        passed=not lost,
        observed=(
            f"{lost:,} rows have no day, and are in no table: give them one in `touches` and "
            "`build`, or leave them out of the input, and reset the stream"
            if lost
            else "every row has a day"
        ),
        numbers={WITHOUT_A_DAY: lost},
    )


def rows_dropped(settings: Settings, stream: str) -> CheckResult:
    """The rows that Spark's operators dropped behind their watermark, over all batches.

    Admission decides lateness with the delay that its readers use, so that an admitted row can be
    late nowhere. A number above zero means that a reader declares less lateness than its source.
    """
    batches, worst = list[dict[str, int]](), list[dict[str, Any]]()
    if settings.lake().exists(STREAM_PROGRESS):
        progress = {"progress": open_table(settings.lake(), STREAM_PROGRESS)}
        batches = query(
            "SELECT count(*) AS batches, coalesce(sum(dropped_by_watermark), 0)::BIGINT AS dropped"
            " FROM progress WHERE stream = ?",
            progress,
            [stream],
        )
        worst = query(
            "SELECT batch_id, run_id, dropped_by_watermark FROM progress"
            " WHERE stream = ? AND dropped_by_watermark > 0"
            " ORDER BY dropped_by_watermark DESC LIMIT ?",
            progress,
            [stream, EXAMPLES],
        )
    [total] = batches or [{"batches": 0, "dropped": 0}]
    return CheckResult(
        name=NONE_DROPPED,
        severity="critical",
        passed=total["dropped"] == 0,
        observed=(
            f"{total['dropped']:,} rows dropped behind the watermark "
            f"in {total['batches']:,} batches"
        ),
        numbers={"rows_dropped": total["dropped"], "batches": total["batches"]},
        examples=tuple(worst),
    )
