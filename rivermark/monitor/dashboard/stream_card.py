"""A stream on the dashboard: its days by hour, its days of a year, and how late its rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final
from zoneinfo import ZoneInfo

from rivermark.html.chart import Chart
from rivermark.monitor.charts import lateness_chart
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.dashboard.drawings import Drawing, day_strip, heat_map, step
from rivermark.monitor.dashboard.formatting import number_text, percent_text
from rivermark.monitor.dashboard.gather import StreamFacts

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
