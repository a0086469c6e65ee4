"""Asks every claim, keeps the answers, and draws the dashboard anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import one_look
from rivermark.model.topology import Topology
from rivermark.monitor.checks.check import Claim
from rivermark.monitor.checks.history import Asked, ask_all, record
from rivermark.monitor.checks.registry import claims_of
from rivermark.monitor.completeness.checks import trust_claims
from rivermark.monitor.dashboard.dashboard import write
from rivermark.monitor.dashboard.gather import Facts, gather
from rivermark.settings import Settings

PAGE: Final = "pages/dashboard.html"


def page_path(settings: Settings) -> Path:
    """Where the dashboard of a home lies."""
    return settings.home / PAGE


@dataclass(frozen=True)
class Refreshed:
    """A page that was drawn: where it is, what it shows, and what was asked for it."""

    path: Path
    facts: Facts
    asked: tuple[Asked, ...]


def refresh(
    settings: Settings,
    topology: Topology,
    now: datetime,
    *,
    to: Path | None = None,
    ask: bool = True,
) -> Refreshed:
    """Draw the page; `ask` first asks every claim about tables that are there, and keeps it."""
    with one_look(settings.lake(), INGEST_FILES):
        asked = ask_all(settings, claims_to_ask(settings, topology), now) if ask else []
        record(settings, [found.look(now) for found in asked])
        facts = gather(settings, topology, now)
    return Refreshed(write(facts, to or page_path(settings)), facts, tuple(asked))


def claims_to_ask(settings: Settings, topology: Topology) -> list[Claim]:
    """Every claim about the streams whose first table is there."""
    lake = settings.lake()
    there = [s for s in topology.streams if lake.exists(s.tables[0])]
    return [c for s in there for c in (*claims_of(s), *trust_claims(topology, s))]
