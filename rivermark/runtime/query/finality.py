"""Finality of a day's results: what a build reaches for, against what was read around it.

A day that is computed again is made of the rows of the stream's margin around it. A window, a
session or a repeat that reaches beyond is cut at the border of what was read, and is no result.
What operators know of their reach is compared with the margin wherever the build is called, at the
start of a stream already. Sessions are measured while they are computed: where one touches the
border, the read is widened until none does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import gcd
from typing import Any, Final
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame

from rivermark.lake.day_predicates import days_of
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.stream import Stream
from rivermark.model.time import DAY, MICROSECOND, MILLISECOND, moment_of_micros
from rivermark.operators.reach import (
    AFTER,
    BEFORE,
    OPEN_UNTIL,
    OUTSIDE,
    UNDECIDED,
    BuildReach,
    Reach,
    collecting,
)
from rivermark.process.instants import Millis, instant
from rivermark.process.keyed import KeyedProcess
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.meter import Meter, Metrics
from rivermark.process.windows.assigners import Sliding, Tumbling
from rivermark.process.windows.lifecycle import Windowed
from rivermark.process.windows.measure import SessionMeasure
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.columns import check_columns

NOTHING: Final = timedelta(0)
MOST: Final = 128 * DAY
"""How far beyond the margin a read is widened at most."""
STAMPED_BY_END: Final = "window_end"
"""The column of `per_window` that lies behind the rows of a result."""


def around_days(stream: Stream) -> timedelta:
    """The span around its days that a stream's recompute reads at first.

    A day more than the margin for what is read by event time; whole days for a refreshed table.
    """
    return whole_days(stream.margin) if stream.kind == "refresh" else stream.margin + DAY


def whole_days(span: timedelta) -> timedelta:
    """A span rounded up to whole days."""
    return -(-span // DAY) * DAY


def build_days_of(stream: Stream, reach: BuildReach, *frames: DataFrame) -> DataFrame:
    """The rows that the stream's build makes of tables, with what it reaches for.

    Raises:
        DeclarationError: The build raised, or an operator reaches farther than the margin.
    """
    build = stream.build
    if isinstance(build, ProcessBuild) and reach.days is not None and has_sessions(build):
        # Spark keeps an accumulator for as long as the driver lives.
        meter = Meter(frames[0].sparkSession.sparkContext)
        build = measured(build, meter, *reach.days)
        reach.measures.append(partial(_gauged, meter))
    with collecting(reach):
        built = apply_build(stream.name, build, *frames)
    check_columns(stream, built.schema)
    check_margin(stream, reach)
    return built


def _gauged(meter: Meter) -> dict[str, int | None]:
    """The gauges of a process's sessions, in microseconds."""
    gauges = meter.take().gauges
    return {n: 1000 * int(gauges[n]) for n in (BEFORE, AFTER, OPEN_UNTIL) if n in gauges}


def check_margin(stream: Stream, reach: BuildReach) -> None:
    """Refuse a margin with which a day computed again is not the day that streamed.

    Raises:
        DeclarationError: With the operators that reach farther, and the margin that suffices.
    """
    if stream.days is None:
        return
    windows = [(_beyond_a_day(stream, r), r) for r in _windows(stream, reach)]
    repeats = [(r.span, r) for r in reach.operators if r.kind == "repeats"]
    farthest = [max(each, key=lambda e: e[0]) for each in (repeats, windows) if each]
    needed = sum((span for span, _ in farthest), NOTHING)
    read = around_days(stream)
    if needed > read:
        operators = " and ".join(operator.words for span, operator in farthest if span)
        raise DeclarationError(
            f"stream '{stream.name}': a result of {operators} is made of rows up to {needed} away "
            f"from its day, and a day that is computed again reads {read} around it: it would not "
            f"be the day that streamed. Declare a `margin` of at least {needed}"
        )


def finished_after(stream: Stream, reach: BuildReach) -> timedelta:
    """The time from the end of a day to the end of the last of its windows."""
    if days_of(stream.tables[0]).column == STAMPED_BY_END:
        return NOTHING
    windows = (_beyond_a_day(stream, r) for r in _windows(stream, reach))
    return max(windows, default=NOTHING)


def open_until(reach: BuildReach, stream: Stream) -> datetime | None:
    """The end of the last session that belongs to the computed days."""
    micros = reach.measured.get(OPEN_UNTIL)
    if micros is None or days_of(stream.tables[0]).column == STAMPED_BY_END:
        return None
    return moment_of_micros(micros)


def read_instead(stream: Stream, reach: BuildReach, around: timedelta) -> timedelta | None:
    """The span to read around the days, since sessions reach beyond; None where all are final.

    Raises:
        RivermarkError: A session lasts so long that the read is not widened any further; or repeats
            are chained beyond the memory of the stream, which may have passed some of them.
    """
    repeats = reach.largest("repeats")
    undecided = reach.measured.get(UNDECIDED)
    if undecided and repeats:
        raise RivermarkError(
            f"stream '{stream.name}': {undecided:,} rows come more than {repeats.span} after the "
            "first row of their key and less after a repeat of it. Whether the stream passed them "
            "depended on what else had come, so the days cannot be computed as they streamed; "
            "nothing was changed. Declare first_of_each with a `within` (and the stream with a "
            "`lateness`) that is longer than such chains of repeats"
        )
    known = around - (repeats.span if repeats else NOTHING)
    beyond = max(reach.measured.get(name, 0) for name in (BEFORE, AFTER)) * MICROSECOND
    missing = max(beyond - known, reach.measured.get(OUTSIDE, 0) * MICROSECOND)
    if missing <= NOTHING:
        return None
    wider = whole_days(max(2 * around, around + missing))
    if wider > stream.margin + MOST:
        raise RivermarkError(
            f"stream '{stream.name}': a session of these days goes on at the border of what was "
            f"read, {around} around them; what is computed would be a piece of it. Nothing was "
            f"changed. Declare a `margin` of at least {wider}, as long as sessions last"
        )
    return wider


def _windows(stream: Stream, reach: BuildReach) -> list[Reach]:
    """The windows of native operators, and of a process."""
    windows_of_build = [each for each in reach.operators if each.kind == "window"]
    if isinstance(stream.build, ProcessBuild):
        windows = getattr(stream.build.make(), "windows", None)
        if isinstance(windows, Tumbling | Sliding) and windows.clock == "event":
            slide = windows.slide if isinstance(windows, Sliding) else windows.size
            step = gcd(slide, windows.offset) * MILLISECOND
            windows_of_build.append(
                Reach("window", "its windows", windows.size * MILLISECOND, step)
            )
    return windows_of_build


def _beyond_a_day(stream: Stream, window: Reach) -> timedelta:
    """The distance of rows of a window from the day of its result, at most."""
    daily = days_of(stream.tables[0])
    if daily.column == STAMPED_BY_END:
        return window.span
    # Windows begin, and days end, on multiples of this: the last one begins so long before.
    zone, years = ZoneInfo(daily.zone), range(daily.start.year, datetime.now(UTC).year + 2)
    moments = [datetime(year, month, 1, tzinfo=UTC) for year in years for month in range(1, 13)]
    offsets = {moment.astimezone(zone).utcoffset() or NOTHING for moment in moments}
    grid = gcd(*[s // MICROSECOND for s in (window.step, DAY, *offsets)]) * MICROSECOND
    return window.span - min(grid, window.span)


@dataclass(frozen=True)
class Measured:
    """Makes the process, which reports of its sessions to a meter."""

    make: Callable[[], KeyedProcess[Any, Any]]
    meter: Meter
    begin: Millis
    until: Millis

    def __call__(self) -> KeyedProcess[Any, Any]:
        """The process, with a measure of its own."""
        process = self.make()
        if isinstance(process, Windowed):
            process.measure_by(SessionMeasure(self.begin, self.until, self._report))
        return process

    def _report(self, measured: dict[str, float]) -> None:
        self.meter.add(Metrics(gauges=measured))


def has_sessions(build: ProcessBuild) -> bool:
    """True if the process merges windows of event time: how long they last only the rows say."""
    made = build.make()
    return isinstance(made, Windowed) and made.windows.merging and made.windows.clock == "event"


def measured(build: ProcessBuild, meter: Meter, begin: datetime, until: datetime) -> ProcessBuild:
    """The same build, whose sessions are measured against the days [begin, until)."""
    return replace(build, make=Measured(build.make, meter, instant(begin), instant(until)))
