"""The page that shows whether the streams' days are complete and right: one self-contained file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rivermark.lake.filesystem import write_file
from rivermark.monitor.dashboard.drawings import bars, history
from rivermark.monitor.dashboard.formatting import render
from rivermark.monitor.dashboard.gather import HOURS_BACK, Facts
from rivermark.monitor.dashboard.stream_card import stream_card

HARDEST_FIRST = ("error", "warn", "unanswered", "held")


@dataclass(frozen=True)
class Attention:
    """Something to inspect: a failed check, or a day that is not complete."""

    state: str
    stream: str
    text: str


def draw(facts: Facts) -> str:
    """The page as HTML."""
    checks = sorted(
        facts.checks,
        key=lambda results: (
            HARDEST_FIRST.index(results[-1].result),
            results[-1].table,
            results[-1].check,
        ),
    )
    suites = [["held" if run.success else "error" for run in runs] for runs in facts.suites]
    return render(
        "dashboard.html",
        facts=facts,
        hours_back=HOURS_BACK,
        tiles=_tiles(facts),
        attention=list(_attention(facts)),
        inflow={s.name: bars(s.inflow, facts.at, HOURS_BACK) for s in facts.streams if s.inflow},
        cards=[stream_card(s) for s in facts.streams if s.days or s.derived_days],
        checks=[(results, history([r.result for r in results])) for results in checks],
        suites=[
            (runs, history(results)) for runs, results in zip(facts.suites, suites, strict=True)
        ],
        tables=sorted(facts.tables, key=lambda table: -table.bytes),
    )


def write(facts: Facts, path: Path) -> Path:
    """Draw the page into a file."""
    write_file(str(path), draw(facts).encode(), durable=False)
    return path


def _tiles(facts: Facts) -> dict[str, str]:
    states = [d.state for s in facts.streams for d in s.days]
    failed = sum(not results[-1].passed for results in facts.checks)
    late = sum(s.lateness.late for s in facts.streams if s.lateness)
    rows_in = sum(s.status.rows_day for s in facts.streams if s.kind in ("ingest", "dump"))
    batches = [s.status.last_batch_at for s in facts.streams if s.status.last_batch_at]
    return {
        "streams": f"{len(facts.streams)}",
        "rows in, 24 h": f"{rows_in:,}",
        "days of inputs complete": f"{states.count('complete')} of {len(states)}",
        "days that fail / warn": f"{states.count('fail')} / {states.count('warn')}",
        "checks failed": f"{failed} of {len(facts.checks)}",
        "late rows": f"{late:,}",
        "last batch (UTC)": f"{max(batches):%H:%M}" if batches else "none",
    }


def _attention(facts: Facts) -> Iterator[Attention]:
    """Failed checks, the hardest first; then streams whose newest closed day is not complete."""
    failed = [results[-1] for results in facts.checks if not results[-1].passed]
    for result in sorted(failed, key=lambda r: HARDEST_FIRST.index(r.result)):
        yield Attention(result.result, result.stream, f"{result.check}: {result.observed}")
    for stream in facts.streams:
        closed = [d for d in stream.days if d.state != "open"]
        if stream.name in {r.stream for r in failed} or not closed:
            continue
        if closed[-1].state in ("warn", "fail"):
            text = f"{closed[-1].day}: {closed[-1].sentence}"
            yield Attention(closed[-1].state, stream.name, text)
