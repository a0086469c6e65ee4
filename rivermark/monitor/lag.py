"""Lag of ingests behind their sources, by part (such as a partition), without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from rivermark.ingest.plan import parts_of
from rivermark.lake.log import CommitLog
from rivermark.model.check import CheckResult
from rivermark.model.errors import RivermarkError
from rivermark.model.source import Part
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.time import MILLISECOND
from rivermark.monitor.time_span import span
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings

KEEPS_UP: Final = "keeps_up"
"""The check that no part of a source waits for long to be read."""
FIRST_SENT: Final = datetime(2011, 1, 1, tzinfo=UTC)
"""No message was sent to Kafka before: an earlier timestamp says something else."""
AHEAD: Final = timedelta(hours=1)
"""How far the clock of a producer may run ahead of this one's."""
WITHOUT_BOUND: Final = timedelta(minutes=10)
"""For ingests that declare no `fresh_within`."""


@dataclass(frozen=True)
class Lag:
    """The part of a source that is in no table yet: records, the oldest one's time (UTC), parts.

    `problem` says why it is not known, as where no broker answers. `wild` are the parts whose
    oldest record has a time at which it was not sent, as of a producer without a clock; they count
    from the last batch.
    """

    records: int = 0
    oldest: datetime | None = None
    parts: tuple[Part, ...] = ()
    problem: str | None = None
    wild: tuple[Part, ...] = ()

    def age(self, now: datetime) -> timedelta:
        """The time for which the oldest unread record has waited."""
        return max(now - self.oldest, timedelta(0)) if self.oldest else timedelta(0)

    def sentence(self, now: datetime) -> str:
        """All of it in words, by part where anything is unread."""
        if self.problem:
            return f"what is unread is not known: {self.problem}"
        if not self.records:
            return "no record is unread"
        oldest = f", the oldest for {span(self.age(now) / MILLISECOND)}" if self.oldest else ""
        parts = ", ".join(f"{part.name} {part.records:,}" for part in self.parts if part.records)
        return f"{self.records:,} records unread{oldest} ({parts}){self._held()}{self._wild()}"

    def _wild(self) -> str:
        """The times that are none, and what counts instead."""
        if not self.wild:
            return ""
        said = ", ".join(f"{part.name}: {part.oldest:%Y-%m-%d %H:%M}" for part in self.wild)
        return f"; the oldest has no time of sending ({said}), so it counts from the last batch"

    def _held(self) -> str:
        """The part of them that cannot be read yet, and why."""
        held = [
            f"{part.held:,} of {part.name} (offset {part.held_at})"
            for part in self.parts
            if part.held
        ]
        if not held:
            return ""
        return (
            f"; {', '.join(held)} wait behind a transaction that is open: end its producer, or "
            "abort it (kafka-transactions.sh find-hanging)"
        )


def lag_of(settings: Settings, ingest: Ingest) -> Lag:
    """The lag of an ingest whose source has parts."""
    try:
        parts = parts_of(settings.lake(), settings.landing_root, ingest)
    except RivermarkError as error:
        return Lag(problem=str(error))
    latest = datetime.now(UTC) + AHEAD
    unread = [part for part in parts if part.oldest is not None]
    wild = [part for part in unread if part.oldest and not FIRST_SENT <= part.oldest <= latest]
    times = [part.oldest for part in unread if part.oldest and part not in wild]
    if wild:
        times.append(_last_batch(settings, ingest))
    records = sum(part.records for part in parts)
    return Lag(records, min(times, default=None), tuple(parts), wild=tuple(wild))


def _last_batch(settings: Settings, ingest: Ingest) -> datetime:
    """The time of the newest batch; before the first one, that of the first start or now."""
    lake = settings.lake()
    generation = read_generation(lake, ingest, unfinished=True)
    since = datetime.now(UTC) if generation is None else generation.since
    newest = CommitLog(lake.path(ingest.raw)).latest() if lake.exists(ingest.raw) else None
    return since if newest is None else newest.at


def lags_of(settings: Settings, streams: Iterable[AnyStream]) -> dict[str, Lag]:
    """The lag of each stream that has one; those of several are measured at the same time."""
    ingests = [s for s in streams if isinstance(s, Ingest) and s.source.together]
    if not ingests:
        return {}
    with ThreadPoolExecutor(len(ingests), "lag") as threads:
        lags = threads.map(partial(lag_of, settings), ingests)
        return {ingest.name: lag for ingest, lag in zip(ingests, lags, strict=True)}


def keeps_up(settings: Settings, ingest: Ingest, now: datetime) -> CheckResult:
    """True if the oldest unread record is younger than `fresh_within`, if the group is to run."""
    result = partial(CheckResult, name=KEEPS_UP, severity="warning")
    lag = lag_of(settings, ingest)
    if lag.problem:
        return result(passed=False, observed=lag.sentence(now))
    age, bound = lag.age(now), ingest.fresh_within or WITHOUT_BOUND
    paused = DesiredStore(settings.state).get(ingest.group).state == "paused"
    return result(
        passed=paused or age <= bound,
        observed=f"{lag.sentence(now)}{'; the group is paused' if paused else ''}",
        bound=f"at most {bound.total_seconds():,.0f} s",
        numbers={
            "unread": lag.records,
            "partitions": len(lag.parts),
            "oldest_unread_seconds": age.total_seconds(),
            **{f"unread {part.name}": part.records for part in lag.parts},
        },
    )
