"""The page that answers whether the streams' days are complete and right: one file, by itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rivermark.html.document import document
from rivermark.html.markup import Child, Markup, tag
from rivermark.lake.filesystem import write_file
from rivermark.monitor.dashboard.formatting import anchor
from rivermark.monitor.dashboard.gather import Facts, StreamFacts
from rivermark.monitor.dashboard.stream_card import stream_card
from rivermark.monitor.dashboard.tables import (
    checks_table,
    recomputes_table,
    sizes_table,
    streams_table,
    suites_table,
)

SECTIONS: Final = (
    ("attention", "What needs a look"),
    ("streams", "Streams"),
    ("days", "Days"),
    ("checks", "Checks"),
    ("suites", "Expectations"),
    ("recomputes", "Days computed again"),
    ("tables", "Tables"),
)


def draw(facts: Facts) -> str:
    """The page as HTML."""
    top = tag(
        "header",
        tag("a", "To the content", href="#main", class_="skip"),
        tag("h1", "Streams and their days"),
        tag(
            "p",
            "As of ",
            tag("time", f"{facts.at:%Y-%m-%d %H:%M} UTC", datetime=facts.at.isoformat()),
            ". All times are UTC unless a zone is named.",
            class_="dim",
        ),
        tag(
            "nav",
            tag("ul", (tag("li", tag("a", name, href=f"#{key}")) for key, name in SECTIONS)),
            aria_label="On this page",
        ),
    )
    with_days = [s for s in facts.streams if s.days or s.derived_days]
    body: dict[str, Child] = {
        "attention": [_tiles(facts), _attention(facts)],
        "streams": streams_table(facts),
        "days": [stream_card(s) for s in with_days]
        or tag("p", "No day has any row yet.", class_="none"),
        "checks": checks_table(facts.checks),
        "suites": suites_table(facts.suites),
        "recomputes": recomputes_table(facts.recomputes),
        "tables": sizes_table(facts.tables),
    }
    main = tag(
        "main",
        (
            tag(
                "section",
                tag("h2", name, id=f"{key}-title"),
                body[key],
                id=key,
                aria_labelledby=f"{key}-title",
            )
            for key, name in SECTIONS
        ),
        id="main",
    )
    foot = tag(
        "footer",
        tag(
            "p",
            "Counts, moments and names only: no value of a row is on this page. "
            "Made by rivermark dashboard, without an engine.",
        ),
    )
    return document("rivermark: streams and their days", top, main, foot)


def write(facts: Facts, path: Path) -> Path:
    """Draw the page into a file."""
    write_file(str(path), draw(facts).encode())
    return path


def newest(moments: Sequence[datetime | None]) -> datetime | None:
    """The newest of some moments that may be missing."""
    return max((m for m in moments if m is not None), default=None)


def _tiles(facts: Facts) -> Markup:
    states = [d.state for s in facts.streams for d in s.days]
    broken = sum(not results[-1].passed for results in facts.checks)
    late = sum(s.lateness.late for s in facts.streams if s.lateness)
    last = newest([s.status.last_batch_at for s in facts.streams])
    tiles: list[tuple[str, str]] = [
        (f"{len(facts.streams)}", "streams"),
        (
            f"{sum(s.status.rows_day for s in facts.streams if s.kind in ('ingest', 'dump')):,}",
            "rows in, 24 h",
        ),
        (f"{states.count('complete')} of {len(states)}", "days of inputs complete"),
        (f"{states.count('fail')} / {states.count('warn')}", "days that fail / warn"),
        (f"{broken} of {len(facts.checks)}", "checks broken"),
        (f"{late:,}", "late rows"),
        (f"{last.astimezone(UTC):%H:%M}" if last else "none", "last batch (UTC)"),
    ]
    return tag(
        "ul",
        (tag("li", tag("b", number), tag("span", name)) for number, name in tiles),
        class_="tiles",
    )


def _attention(facts: Facts) -> Markup:
    """Broken checks, errors first; then the streams whose newest closed day is not complete."""
    broken = [results[-1] for results in facts.checks if not results[-1].passed]
    order = ("error", "warn", "unanswered")
    items = [
        tag(
            "li",
            tag("span", look.result, class_=f"badge {look.result}"),
            " ",
            tag("a", look.stream, href=f"#{anchor(look.stream)}"),
            f" {look.check}: {look.observed}",
        )
        for look in sorted(broken, key=lambda b: order.index(b.result))
    ]
    told = {look.stream for look in broken}
    items += [_day_item(s) for s in facts.streams if s.name not in told and _trouble(s)]
    if not items:
        return tag("p", "Nothing: every check held at its last look.")
    return tag("ul", items, class_="attention")


def _trouble(stream: StreamFacts) -> bool:
    closed = [d for d in stream.days if d.state != "open"]
    return bool(closed) and closed[-1].state in ("warn", "fail")


def _day_item(stream: StreamFacts) -> Markup:
    day = [d for d in stream.days if d.state != "open"][-1]
    return tag(
        "li",
        tag("span", day.state, class_=f"badge {day.state}"),
        " ",
        tag("a", stream.name, href=f"#{anchor(stream.name)}"),
        f" {day.day}: {day.sentence}",
    )
