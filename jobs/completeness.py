"""From judged days and proposals to what Dagster's pages show."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import dagster as dg

from jobs.check_results import result_of_claim
from rivermark.model.ingest import MILLI
from rivermark.model.table import Table
from rivermark.monitor.charts.lateness import draw_lateness
from rivermark.monitor.checks.check import Claim
from rivermark.monitor.completeness.checks import DAY_COMPLETE, answer_of_day
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.late_statistics import span
from rivermark.monitor.lateness_proposal import Proposal
from rivermark.settings import Settings


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
