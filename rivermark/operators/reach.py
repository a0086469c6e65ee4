"""Distance of the rows of one result: what the operators of a build say of themselves.

A day that is computed again reads rows around it. Whether those suffice, operators know: a window
its size, the search for repeats its span. How long sessions last only the rows say: they are
measured while they are computed. The runtime collects both around a build and compares them with
the margin of the stream; a build that is called without it is not observed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, Literal

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from rivermark.model.time import MICROSECOND, micros_of

Span = tuple[datetime, datetime]
"""Two instants (UTC), the end not included."""
Measure = Callable[[], Mapping[str, int | None]]
"""Values by their names, known once the rows were computed."""


@dataclass(frozen=True)
class Reach:
    """The distance of rows of which an operator makes one result, at most, in words too.

    `step` is the largest span on whose multiples all borders of its windows lie.
    """

    kind: Literal["window", "repeats"]
    words: str
    span: timedelta
    step: timedelta = MICROSECOND


@dataclass
class BuildReach:
    """Declarations of one call of a build. `days` are those computed, None on a stream.

    Of a refreshed table `changed` are those of the days in which rows changed. Results of the days
    are made of rows at most `margin` away from them.
    """

    days: Span | None = None
    changed: Span | None = None
    margin: timedelta = timedelta(0)
    operators: list[Reach] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)

    def largest(self, kind: Literal["window", "repeats"]) -> Reach | None:
        """The operator of a kind that reaches farthest."""
        return max(
            (r for r in self.operators if r.kind == kind), key=lambda r: r.span, default=None
        )

    def observe(self, rows: DataFrame, **measured: Column) -> DataFrame:
        """The same rows, whose aggregates are known once they were computed."""
        observation = Observation()
        self.measures.append(partial(_observed, rows.sparkSession, observation))
        return rows.observe(observation, *[c.alias(name) for name, c in measured.items()])

    @cached_property
    def measured(self) -> dict[str, int]:
        """The largest value of each measure; to be asked after the rows were computed."""
        largest: dict[str, int] = {}
        for measure in self.measures:
            for name, value in measure().items():
                if value is not None:
                    largest[name] = max(value, largest.get(name, value))
        return largest


def _observed(spark: SparkSession, observation: Observation) -> dict[str, int | None]:
    """The observed metrics; nothing where Spark computed no rows to observe."""
    # Listeners are notified a moment after a computation has ended.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    if observation._jo is None or not observation._jo.future().isCompleted():
        return {}
    return observation.get


_CURRENT: ContextVar[BuildReach | None] = ContextVar("reach of the build", default=None)


@contextmanager
def collecting(reach: BuildReach) -> Iterator[BuildReach]:
    """Collect what operators declare while a build is called."""
    token = _CURRENT.set(reach)
    try:
        yield reach
    finally:
        _CURRENT.reset(token)


def measuring() -> bool:
    """Returns True if days of a table are computed, so that measures are taken."""
    current = _CURRENT.get()
    return current is not None and current.days is not None


def declare(reach: Reach) -> None:
    """Say how far an operator reaches."""
    current = _CURRENT.get()
    if current is not None:
        current.operators.append(reach)


BEFORE: Final = "before"
AFTER: Final = "after"
OUTSIDE: Final = "outside"
OPEN_UNTIL: Final = "open_until"
UNDECIDED: Final = "undecided"


def measure_sessions(sessions: DataFrame, start: str, end: str, gap: timedelta) -> DataFrame:
    """The same sessions; measured is how far those of the computed days reach beyond them.

    In microseconds: before the days and after them, the gap included within which another event
    would belong to them; outside of all days, those that hold changed rows; and until when the last
    lasts that begins in the days.
    """
    current = _CURRENT.get()
    if current is None or current.days is None or sessions.isStreaming:
        return sessions
    first, last = F.unix_micros(start), F.unix_micros(end)
    begin, until = map(micros_of, current.days)
    touching = (first < until) & (last >= begin)
    measures = {
        BEFORE: F.max(F.when(touching, begin - (first - gap // MICROSECOND))),
        AFTER: F.max(F.when(touching, last - until)),
        OPEN_UNTIL: F.max(F.when((first >= begin) & (first < until), last)),
    }
    if current.changed is not None:
        changed_from, changed_until = map(micros_of, current.changed)
        changed = (first < changed_until) & (last >= changed_from)
        measures[OUTSIDE] = F.max(F.when(changed, F.greatest(begin - first, last - until)))
    return current.observe(sessions, **measures)


def measure_repeats(rows: DataFrame, event_time: str, undecided: Column) -> DataFrame:
    """The same rows; measured is how many near the computed days are undecided."""
    current = _CURRENT.get()
    if current is None or current.days is None:
        return rows
    start, end = (micros_of(moment) for moment in current.days)
    margin, moment = current.margin // MICROSECOND, F.unix_micros(event_time)
    near = (moment >= start - margin) & (moment < end + margin)
    return current.observe(rows, **{UNDECIDED: F.count_if(near & undecided)})
