"""The numbers at the head of the dashboard: each says what it counts, and of what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rivermark.monitor.dashboard.formatting import lag_text, time_text
from rivermark.monitor.dashboard.gather import Facts
from rivermark.monitor.dashboard.stream_group import worst

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
