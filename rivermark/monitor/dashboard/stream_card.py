"""A stream on the dashboard: its days by hour, its days of a year, and how late its rows are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

from rivermark.html.markup import Child, Markup, table, tag
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.dashboard.formatting import anchor
from rivermark.monitor.dashboard.gather import StreamFacts
from rivermark.monitor.dashboard.svg import curve, day_strip, heat_map, step
from rivermark.monitor.late_statistics import Lateness, span
from rivermark.monitor.lateness_proposal import Proposal

DAYS_BY_HOUR: Final = 35
DAYS_IN_TABLE: Final = 14

LEGEND: Final = (
    ("h0", "no row"),
    ("h1", "few"),
    ("h4", "many"),
    ("thin", "lacks rows"),
    ("miss", "missing"),
)
D = TypeVar("D", Day, DerivedDay)

STATES: Final = ("complete", "warn", "fail", "open")


def stream_card(stream: StreamFacts) -> Markup:
    """All that is told of one stream's days."""
    days: Sequence[Day | DerivedDay] = stream.days or stream.derived_days
    newest = days[-1]
    parts: list[Child] = []
    if stream.days:
        parts.append(_by_hour(stream))
    if len(days) > 1:
        parts.append(_by_day(stream, days))
    if stream.lateness is not None and stream.proposal is not None:
        parts.append(_late(stream.lateness, stream.proposal))
    return tag(
        "article",
        tag(
            "header",
            tag("h3", stream.name),
            tag("span", f"{newest.day}: {newest.state}", class_=f"badge {newest.state}"),
        ),
        tag("p", stream.description, class_="dim"),
        *_metrics(stream),
        tag("div", parts, class_="grid"),
        table_of_days(stream),
        id=anchor(stream.name),
    )


def _metrics(stream: StreamFacts) -> list[Markup]:
    """The numbers that the stream's process function counts itself."""
    if not stream.status.metrics:
        return []
    told = ", ".join(f"{name} {number:,}" for name, number in sorted(stream.status.metrics.items()))
    return [tag("p", f"Counts {told}.")]


def table_of_days(stream: StreamFacts) -> Markup:
    """The newest days, and every older one that is not complete, with their numbers."""
    if stream.days:
        shown = _chosen(stream.days)
        return tag(
            "details",
            tag("summary", f"Days of {stream.name} in numbers"),
            table(
                f"Days of {stream.name}; hours without rows in UTC",
                (
                    "day",
                    "state",
                    "rows",
                    "admitted",
                    "repeats",
                    "late",
                    "merged",
                    "quarantined",
                    "unaccounted",
                    "expected",
                    "short",
                    "missing hours",
                    "late money",
                ),
                (
                    (
                        d.day.isoformat(),
                        tag("span", d.state, class_=f"badge {d.state}"),
                        *(
                            f"{n:,}"
                            for n in (
                                d.seen,
                                d.admitted,
                                d.repeats,
                                d.late,
                                d.merged,
                                d.quarantined,
                            )
                        ),
                        f"{d.unaccounted:,}",
                        "" if d.expected is None else f"{d.expected:,}",
                        f"{d.short:,}",
                        ", ".join(f"{h:%H:%M}" for h in d.missing_hours),
                        "" if d.money_share is None else f"{d.money_share:.2%}",
                    )
                    for d in shown
                ),
                numeric=(
                    "rows",
                    "admitted",
                    "repeats",
                    "late",
                    "merged",
                    "quarantined",
                    "unaccounted",
                    "expected",
                    "short",
                    "late money",
                ),
            ),
        )
    return tag(
        "details",
        tag("summary", f"Days of {stream.name} in numbers"),
        table(
            f"Days of {stream.name}",
            ("day", "state", "rows", "what is so"),
            (
                (
                    d.day.isoformat(),
                    tag("span", d.state, class_=f"badge {d.state}"),
                    f"{d.rows:,}",
                    tag("span", d.sentence, class_="say"),
                )
                for d in _chosen(stream.derived_days)
            ),
            numeric=("rows",),
        ),
    )


def _chosen(days: Sequence[D]) -> list[D]:
    newest_first: list[D] = sorted(days, key=_date, reverse=True)
    older: list[D] = [d for d in newest_first[DAYS_IN_TABLE:] if d.state in ("warn", "fail")]
    return newest_first[:DAYS_IN_TABLE] + older[:DAYS_IN_TABLE]


def _date(day: Day | DerivedDay) -> date:
    return day.day


def _by_hour(stream: StreamFacts) -> Markup:
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
    return tag(
        "div",
        tag("h4", f"By hour ({stream.zone}), newest day on top"),
        heat_map([d.day for d in shown], cells, label),
        _legend(LEGEND),
    )


def _by_day(stream: StreamFacts, days: Sequence[Day | DerivedDay]) -> Markup:
    states = {d.day: str(d.state) for d in days}
    counted = Counter(states.values())
    told = ", ".join(f"{counted[state]} {state}" for state in STATES if counted[state])
    return tag(
        "div",
        tag("h4", f"By day: {told}"),
        day_strip(states, f"Days of {stream.name} from {min(states)} to {max(states)}: {told}"),
        _legend([(state, state) for state in STATES if counted[state]]),
    )


def _late(found: Lateness, proposal: Proposal) -> Markup:
    told = f"{found.late:,} of {found.valid:,} valid rows ({found.share:.2%})"
    told += f", {found.merged:,} of them merged since" if found.merged else ""
    if found.late:
        told += (
            f"; behind the watermark by {span(found.p50_ms)} (half), {span(found.p95_ms)} (95 %), "
            f"{span(found.p99_ms)} (99 %), at most {span(found.max_ms)}"
        )
    if found.money is not None and found.money_share is not None:
        told += f"; money concerned: {found.money:,} ({found.money_share:.2%})"
    parts: list[Child] = [tag("h4", "Late rows"), tag("p", told)]
    if proposal.curve:
        names = [_short(c.lateness) for c in proposal.curve]
        places = {c.lateness: n for n, c in enumerate(proposal.curve)}
        marked = {places[proposal.lateness]: "now"}
        if proposal.proposed is not None:
            marked[places[proposal.proposed]] = "best"
        label = f"Share of late rows by allowed lateness. {proposal.sentence}"
        shares = [c.share for c in proposal.curve]
        parts += [
            curve(list(zip(names, shares, strict=True)), marked, label),
            _legend((("now", "lateness of now"), ("best", "proposal"))),
        ]
    parts.append(tag("p", f"The door {proposal.sentence}.", class_="dim"))
    if found.late:
        parts.append(
            tag(
                "details",
                tag("summary", "Late rows by source"),
                table(
                    f"Late rows of {found.stream} by folder and by file",
                    ("source", "late", "valid", "share", "late by, half", "99 %"),
                    (
                        (
                            s.source,
                            f"{s.late:,}",
                            f"{s.valid:,}",
                            f"{s.share:.2%}",
                            span(s.p50_ms),
                            span(s.p99_ms),
                        )
                        for s in (*found.by_folder, *found.by_file)
                    ),
                    numeric=("late", "valid", "share", "late by, half", "99 %"),
                ),
            )
        )
    return tag("div", parts)


def _legend(entries: Sequence[tuple[str, str]]) -> Markup:
    return tag(
        "p",
        (
            tag(
                "span",
                tag(
                    "svg",
                    tag("path", d="M0 0h12v12h-12z", class_=kind),
                    viewbox="0 0 12 12",
                    aria_hidden="true",
                ),
                name,
            )
            for kind, name in entries
        ),
        class_="legend",
    )


def _short(lateness: timedelta) -> str:
    seconds = lateness.total_seconds()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g}{unit}"
    return f"{seconds:.3g}s"
