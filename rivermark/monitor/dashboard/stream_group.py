"""The streams of a group on the dashboard, those with something broken first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from rivermark.html.chart import Chart
from rivermark.monitor.charts import lateness_chart
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.dashboard.drawings import Drawing, bars, day_row, day_strip, heat_map, step
from rivermark.monitor.dashboard.formatting import number_text, percent_text
from rivermark.monitor.dashboard.gather import Facts, StreamFacts

DAYS_BY_HOUR: Final = 35
DAYS_IN_TABLE: Final = 14
STATES: Final = ("complete", "warn", "fail", "open")


COLUMNS: Final[Sequence[tuple[str, Callable[[Day], str]]]] = (
    ("rows", lambda d: number_text(d.seen)),
    ("admitted", lambda d: number_text(d.admitted)),
    ("repeats", lambda d: number_text(d.repeats)),
    ("late", lambda d: number_text(d.late)),
    ("merged", lambda d: number_text(d.merged)),
    ("quarantined", lambda d: number_text(d.quarantined)),
    ("unaccounted", lambda d: number_text(d.unaccounted)),
    ("expected", lambda d: number_text(d.expected)),
    ("short", lambda d: number_text(d.short)),
    ("late money", lambda d: percent_text(d.money_share)),
)
"""Numbers of a day of an ingest; a column in which all days have none is left out."""


@dataclass(frozen=True, kw_only=True)
class StreamCard:
    """Drawings of a stream's days; a drawing is None where there is nothing to draw."""

    stream: StreamFacts
    newest: Day | DerivedDay
    by_hour: Drawing | None
    by_day: Drawing | None
    states: str
    legend: dict[str, str]
    shown: Sequence[Day | DerivedDay]
    columns: Sequence[tuple[str, Callable[[Day], str]]]
    curve: Chart | None


def stream_card(stream: StreamFacts) -> StreamCard:
    """The card of a stream that has days."""
    days: Sequence[Day | DerivedDay] = stream.days or stream.derived_days
    by_state = Counter(day.state for day in days)
    states = ", ".join(f"{by_state[state]} {state}" for state in STATES if by_state[state])
    label = f"Days of {stream.name} from {days[0].day} to {days[-1].day}: {states}"
    return StreamCard(
        stream=stream,
        newest=days[-1],
        by_hour=_by_hour(stream) if stream.days else None,
        by_day=day_strip({d.day: d.state for d in days}, label) if len(days) > 1 else None,
        states=states,
        legend={state: state for state in STATES if by_state[state]},
        shown=_shown(days),
        columns=[
            (name, text)
            for name, text in COLUMNS
            if any(text(day) not in ("", "0") for day in stream.days)
        ],
        curve=lateness_chart(stream.proposal)
        if stream.proposal and stream.proposal.curve
        else None,
    )


def _shown(days: Sequence[Day | DerivedDay]) -> list[Day | DerivedDay]:
    """The newest days, and the newest of the older ones that are not complete."""
    newest_first = sorted(days, key=lambda day: day.day, reverse=True)
    older = [d for d in newest_first[DAYS_IN_TABLE:] if d.state in ("warn", "fail")]
    return newest_first[:DAYS_IN_TABLE] + older[:DAYS_IN_TABLE]


def _by_hour(stream: StreamFacts) -> Drawing:
    zone = ZoneInfo(stream.zone)
    shown = stream.days[-DAYS_BY_HOUR:]
    most = max((h.seen for d in shown for h in d.hours.values()), default=0)
    cells: dict[tuple[date, int], str] = {}
    for day in shown:
        for hour, rows in day.hours.items():
            kind = step(rows.seen, most)
            if hour in day.missing_hours:
                kind = "miss"
            elif hour in day.short_hours:
                kind = "thin"
            cells[day.day, hour.astimezone(zone).hour] = kind
    missing = sum(len(d.missing_hours) for d in shown)
    label = (
        f"Rows of {stream.name} by hour of event time ({stream.zone}), {len(shown)} days: "
        f"at most {most:,} an hour, {missing} hours missing"
    )
    return heat_map([d.day for d in shown], cells, label)


WORST_FIRST: Final = ("error", "fail", "unanswered", "warn", "open", "complete", "held")
"""Results of checks and states of days, by what a person should know first."""
BROKEN: Final = ("error", "fail")
NEWEST_DAYS: Final = 45


@dataclass(frozen=True, kw_only=True)
class StreamGroup:
    """The streams of a group that ever ran; `idle` are the names of the others."""

    name: str
    state: str
    summary: str
    streams: tuple[StreamFacts, ...]
    idle: tuple[str, ...]
    sparks: Mapping[str, Drawing]
    cards: tuple[StreamCard, ...]

    @property
    def broken(self) -> bool:
        """True if a check of it failed, or a newest day did."""
        return self.state in BROKEN


@dataclass(frozen=True, kw_only=True)
class GroupDays:
    """The newest days of a group, each in the state of its worst stream."""

    name: str
    first: date
    last: date
    days: Drawing
    complete: int
    total: int


def worst(states: Iterable[str]) -> str:
    """The state that a person should know first; held, without any."""
    return min(states, key=WORST_FIRST.index, default="held")


def stream_groups(facts: Facts) -> list[StreamGroup]:
    """The groups of which any stream ever ran; the worst first, else as declared."""
    by_group: dict[str, list[StreamFacts]] = {}
    for stream in facts.streams:
        by_group.setdefault(stream.status.group, []).append(stream)
    failed: dict[str, list[str]] = {}
    for results in facts.checks:
        failed.setdefault(results[-1].stream, []).append(results[-1].result)
    states = {s.name: _state(s, failed.get(s.name, ())) for s in facts.streams}
    groups = [_group(facts, name, streams, states) for name, streams in by_group.items()]
    return sorted((g for g in groups if g.streams), key=lambda g: WORST_FIRST.index(g.state))


def days_of_groups(groups: Iterable[StreamGroup]) -> list[GroupDays]:
    """The newest days of each group that has days."""
    return [days for group in groups if (days := _days(group)) is not None]


def _state(stream: StreamFacts, results: Iterable[str]) -> str:
    days: Sequence[Day | DerivedDay] = stream.days or stream.derived_days
    newest = [day for day in days if day.state != "open"] or days
    return worst([*results, *(day.state for day in newest[-1:])])


def _group(
    facts: Facts, name: str, streams: list[StreamFacts], states: Mapping[str, str]
) -> StreamGroup:
    ran = sorted(
        (s for s in streams if s.ran), key=lambda stream: WORST_FIRST.index(states[stream.name])
    )
    broken = sum(states[stream.name] in BROKEN for stream in ran)
    running = sum(stream.status.alive is True for stream in ran)
    history = facts.history
    ticks = sorted({at for buckets in history.by_stream.values() for at in buckets})
    return StreamGroup(
        name=name,
        state=worst(states[stream.name] for stream in ran),
        summary=f"streams: {len(ran)}, broken: {broken}, running: {running}",
        streams=tuple(ran),
        idle=tuple(stream.name for stream in streams if not stream.ran),
        sparks={
            s.name: bars([buckets[at].rows if at in buckets else 0 for at in ticks])
            for s in ran
            if (buckets := history.by_stream.get(s.name))
        },
        cards=tuple(stream_card(s) for s in ran if s.days or s.derived_days),
    )


def _days(group: StreamGroup) -> GroupDays | None:
    by_day: dict[date, list[str]] = {}
    for stream in group.streams:
        for day in stream.days or stream.derived_days:
            by_day.setdefault(day.day, []).append(day.state)
    if not by_day:
        return None
    newest = sorted(by_day)[-NEWEST_DAYS:]
    states = {day: worst(by_day[day]) for day in newest}
    counts = Counter(states.values())
    said = ", ".join(f"{counts[state]} {state}" for state in WORST_FIRST if counts[state])
    return GroupDays(
        name=group.name,
        first=newest[0],
        last=newest[-1],
        days=day_row(states, f"Days of {group.name} from {newest[0]} to {newest[-1]}: {said}"),
        complete=counts["complete"],
        total=len(newest),
    )
