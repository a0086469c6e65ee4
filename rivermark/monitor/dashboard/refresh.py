"""Evaluates every check, records the results, and draws the dashboard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import snapshot
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.history import Evaluation, evaluate_all, record
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.completeness.checks import completeness_checks
from rivermark.monitor.dashboard.dashboard import write, write_results
from rivermark.monitor.dashboard.gather import RESULTS_PAGE, Facts, gather
from rivermark.settings import Settings

PAGE: Final = "pages/dashboard.html"
DRAWN: Final = (PAGE.rpartition("/")[2], RESULTS_PAGE)
"""The pages that are drawn together, by their names in the folder of pages."""


def page_path(settings: Settings) -> Path:
    """The path of a home's dashboard."""
    return settings.home / PAGE


@dataclass(frozen=True)
class Refreshed:
    """A page that was drawn: its path, what it shows, and the checks evaluated for it."""

    path: Path
    facts: Facts
    evaluations: tuple[Evaluation, ...]


def refresh(
    settings: Settings,
    topology: Topology,
    now: datetime,
    *,
    to: Path | None = None,
    evaluate: bool = True,
) -> Refreshed:
    """Draw the page; `evaluate` first evaluates and records the checks of tables that exist."""
    with snapshot(settings.lake(), INGEST_FILES):
        checks = checks_to_evaluate(settings, topology) if evaluate else []
        evaluations = evaluate_all(settings, checks, now)
        record(settings, [evaluation.recorded(now) for evaluation in evaluations])
        facts = gather(settings, topology, now)
    page = to or page_path(settings)
    if page.parent != page_path(settings).parent:
        # A page elsewhere has none of the others beside it.
        facts = replace(facts, failing_pages={}, data_docs={}, results_page="")
    else:
        write_results(facts, page.with_name(RESULTS_PAGE), page.name)
    return Refreshed(write(facts, page), facts, tuple(evaluations))


def checks_to_evaluate(settings: Settings, topology: Topology) -> list[StreamCheck]:
    """Every check of the streams whose first table exists."""
    lake = settings.lake()
    started = [s for s in topology.streams if lake.exists(s.tables[0])]
    return [c for s in started for c in (*checks_of_stream(s), *completeness_checks(topology, s))]
