"""From judged days and proposals to what Dagster's pages show."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import dagster as dg

from jobs.evaluation import result_of_claim
from rivermark.lake.table import Table
from rivermark.quality.lateness_chart import draw_lateness
from rivermark.settings import Settings
from rivermark.stream import MILLI
from rivermark.watch.claim import Claim
from rivermark.watch.derived import DerivedDay
from rivermark.watch.late import span
from rivermark.watch.proposal import Proposal
from rivermark.watch.trust import DAY_COMPLETE, answer_of_day


def result_of_day(table: Table, day: DerivedDay) -> dg.AssetCheckResult:
    """A day of a derived table as the result of its check."""
    answer = answer_of_day(day)
    claim = Claim(
        name=DAY_COMPLETE,
        table=table,
        stream=day.stream,
        description="",
        severity="error",
        ask=lambda *_: answer,
    )
    return result_of_claim(claim, answer)


def proposals_table(proposals: Sequence[Proposal]) -> str:
    """The proposals as a Markdown table."""
    lines = ["| stream | allowed now | proposed | why |", "|---|---|---|---|"]
    for p in proposals:
        proposed = span(p.proposed // MILLI) if p.proposed else "none"
        allowed = span(p.lateness // MILLI)
        lines.append(f"| {p.stream} | {allowed} | {proposed} | {p.sentence} |")
    return "\n".join(lines)


def chart_of(settings: Settings, proposals: Sequence[Proposal]) -> str:
    """The chart as Markdown with the picture in it: the page shows it without any further file."""
    path = draw_lateness(proposals, settings.home / "charts" / "lateness_proposals.png")
    picture = base64.b64encode(path.read_bytes()).decode()
    return f"![Share of late rows by allowed lateness](data:image/png;base64,{picture})"
