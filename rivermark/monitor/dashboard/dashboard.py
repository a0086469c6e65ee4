"""The page that shows whether the streams' days are complete and right: one self-contained file.

Beside it the published results alone, large: to show to others, each plot as a picture too.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rivermark.html.chart import Chart, Ranking
from rivermark.lake.filesystem import write_file
from rivermark.monitor.charts import picture
from rivermark.monitor.checks.history import RecordedResult
from rivermark.monitor.dashboard.drawings import Drawing, history
from rivermark.monitor.dashboard.formatting import anchor, lag_text, render, time_text
from rivermark.monitor.dashboard.gather import Facts
from rivermark.monitor.dashboard.history import charts_of_history
from rivermark.monitor.dashboard.stream_group import (
    WORST_FIRST,
    days_of_groups,
    stream_groups,
    worst,
)

KINDS: Final = {
    **dict.fromkeys(("error", "fail"), "bad"),
    **dict.fromkeys(("unanswered", "warn"), "warn"),
    **dict.fromkeys(("open", "complete", "held"), "good"),
}
"""How a tile is marked, by the worst of what it counts."""


@dataclass(frozen=True)
class Tile:
    """A number at the head of the page: what it counts, and of what."""

    name: str
    value: str
    detail: str
    kind: str = ""


def tiles(facts: Facts) -> Iterator[Tile]:
    """Each says what it counts and of what; none that would count nothing."""
    if facts.checks:
        results = Counter(results[-1].result for results in facts.checks)
        failed = len(facts.checks) - results["held"]
        words = {"error": "error", "warn": "warning", "unanswered": "not evaluated"}
        by_kind = ", ".join(f"{word}: {results[r]}" for r, word in words.items() if results[r])
        yield Tile(
            "Checks",
            f"{failed} failed" if failed else "all held",
            f"of {len(facts.checks)} checks" + (f"; {by_kind}" if failed else ""),
            KINDS[worst(results)],
        )
    if facts.suites:
        broken = sum(runs[-1].result != "held" for runs in facts.suites)
        yield Tile(
            "Expectations",
            f"{broken} failed" if broken else "all held",
            f"of {len(facts.suites)} suites",
            KINDS[worst(runs[-1].result for runs in facts.suites)],
        )
    days: Counter[str] = Counter(day.state for stream in facts.streams for day in stream.days)
    if total := days.total():
        rest = ", ".join(
            f"{word}: {days[state]}"
            for state, word in (("fail", "failed"), ("warn", "warnings"), ("open", "open"))
            if days[state]
        )
        yield Tile(
            "Days of inputs",
            f"{days['complete']:,} complete",
            f"of {total:,} days" + (f"; {rest}" if rest else ""),
            KINDS[worst(days)],
        )
    ran = [stream for stream in facts.streams if stream.ran]
    running = sum(stream.status.alive is True for stream in ran)
    dead = sum(stream.status.alive is False for stream in ran)
    yield Tile(
        "Streams",
        f"{running} running",
        f"of {len(facts.streams)} streams; ever ran: {len(ran)}"
        + (f"; died: {dead}" if dead else ""),
        "bad" if dead else "",
    )
    inputs = [s for s in facts.streams if s.kind in ("ingest", "dump")]
    yield Tile(
        "Rows read",
        f"{sum(s.status.rows_day for s in inputs):,}",
        f"in the last 24 h, of {sum(s.status.rows_in for s in inputs):,} in all",
    )
    late = [stream.lateness for stream in facts.streams if stream.lateness]
    if valid := sum(lateness.valid for lateness in late):
        rows = sum(lateness.late for lateness in late)
        yield Tile("Late rows", f"{rows:,}", f"of {valid:,} valid rows ({rows / valid:.2%})")
    if batches := [s.status.last_batch_at for s in facts.streams if s.status.last_batch_at]:
        newest = max(batches)
        yield Tile("Newest batch", f"{lag_text(newest, facts.at)} ago", f"{time_text(newest)} UTC")


SHOWN: Final = 8
"""Things that need attention before the rest of them is folded."""


@dataclass(frozen=True)
class Attention:
    """Something to inspect: a failed check or suite, or a day that is not complete.

    `place` is where the page, or one beside it, shows more of what is called `name`.
    """

    state: str
    name: str
    text: str
    place: str


def draw(facts: Facts) -> str:
    """The page as HTML; what there is nothing of is left out."""
    groups = stream_groups(facts)
    charts = _charts(facts)
    completeness = days_of_groups(groups)
    checks = _checks(facts)
    parts = {
        "attention": ("What needs attention", True),
        "activity": ("How it runs", charts or completeness),
        "results": ("Published results", facts.results),
        "streams": ("Streams", True),
        "checks": ("Checks", checks),
        "suites": ("Expectations", facts.suites),
        "recomputes": ("Recomputed days", facts.recomputes),
        "tables": ("Tables", facts.tables),
    }
    started = {stream.name for group in groups for stream in group.streams}
    places = {f"#{anchor(name)}" for name in started} | {"#suites", *facts.failing_pages.values()}
    return render(
        "dashboard.html",
        facts=facts,
        sections={key: name for key, (name, shown) in parts.items() if shown},
        tiles=list(tiles(facts)),
        attention=list(_attention(facts)),
        shown=SHOWN,
        places=places,
        charts=charts,
        completeness=completeness,
        groups=groups,
        idle=_idle_groups(facts, started),
        has_days=any(group.cards for group in groups),
        checks=checks,
        suites=[(runs, history([run.result for run in runs])) for runs in facts.suites],
        tables=sorted(facts.tables, key=lambda table: -table.bytes),
        folded={
            "suites": _suites_summary(facts),
            "recomputes": f"The {len(facts.recomputes)} newest recomputed ranges of days",
            "tables": f"{len(facts.tables)} tables on disk, the largest first",
        },
    )


def write(facts: Facts, path: Path) -> Path:
    """Draw the page into a file."""
    write_file(str(path), draw(facts).encode(), durable=False)
    return path


class ShownPlot(NamedTuple):
    """A plot, and its picture: an SVG file within the page, and the name to save it by."""

    chart: Chart | Ranking
    address: str
    name: str


def write_results(facts: Facts, path: Path, dashboard: str) -> Path:
    """Draw the page of the results alone; `dashboard` is the name of the page beside it."""
    plots = [_shown(chart) for chart in facts.results]
    page = render("results.html", at=facts.at, plots=plots, dashboard=dashboard)
    write_file(str(path), page.encode(), durable=False)
    return path


def _shown(chart: Chart | Ranking) -> ShownPlot:
    data = b64encode(picture(chart.title, [chart]).encode()).decode()
    name = re.sub(r"\W+", "-", chart.title.lower()).strip("-") or "plot"
    return ShownPlot(chart, f"data:image/svg+xml;base64,{data}", name)


def _charts(facts: Facts) -> list[Chart | Ranking]:
    ingests = [s.name for s in facts.streams if s.kind in ("ingest", "dump", "lookup")]
    live = [s.name for s in facts.streams if s.kind == "ingest" and not s.archived]
    return charts_of_history(facts.history, ingests, live)


def _checks(facts: Facts) -> dict[str, list[tuple[Sequence[RecordedResult], Drawing]]]:
    """The checks by a summary: those that did not hold, the worst first; then those that did."""
    ordered = sorted(
        facts.checks,
        key=lambda results: (
            WORST_FIRST.index(results[-1].result),
            results[-1].table,
            results[-1].check,
        ),
    )
    by_passed: dict[bool, list[tuple[Sequence[RecordedResult], Drawing]]] = {False: [], True: []}
    for results in ordered:
        marks = history([result.result for result in results])
        by_passed[results[-1].passed].append((results, marks))
    total = len(ordered)
    return {
        f"{len(some)} of {total} checks {'held' if passed else 'did not hold'}": some
        for passed, some in by_passed.items()
        if some
    }


def _suites_summary(facts: Facts) -> str:
    held = sum(runs[-1].result == "held" for runs in facts.suites)
    return f"{held} of {len(facts.suites)} suites held at their last run"


def _idle_groups(facts: Facts, started: set[str]) -> list[str]:
    """Groups of which no stream ever ran."""
    running = {s.status.group for s in facts.streams if s.name in started}
    groups = dict.fromkeys(s.status.group for s in facts.streams)
    return [group for group in groups if group not in running]


def _attention(facts: Facts) -> Iterator[Attention]:
    """Failed checks and suites, the hardest first; then streams whose newest day is incomplete."""
    failed = [results[-1] for results in facts.checks if not results[-1].passed]
    items = [
        Attention(r.result, r.stream, f"{r.check}: {r.observed}", f"#{anchor(r.stream)}")
        for r in failed
    ]
    for newest in (runs[-1] for runs in facts.suites if runs[-1].result != "held"):
        text = f"{newest.failed} of {newest.expectations} rules do not hold at {newest.version}"
        place = facts.failing_pages.get(newest.suite, "#suites")
        items.append(Attention(newest.result, newest.suite, text, place))
    yield from sorted(items, key=lambda item: WORST_FIRST.index(item.state))
    for stream in facts.streams:
        closed = [d for d in stream.days if d.state != "open"]
        if stream.name in {r.stream for r in failed} or not closed:
            continue
        if closed[-1].state in ("warn", "fail"):
            text = f"{closed[-1].day}: {closed[-1].sentence}"
            yield Attention(closed[-1].state, stream.name, text, f"#{anchor(stream.name)}")
