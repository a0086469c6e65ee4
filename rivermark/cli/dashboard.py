"""`rivermark dashboard`: the page of streams and days, as one file, without an engine."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rivermark.cli.console import err, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.monitor.dashboard.refresh import PAGE, refresh


def dashboard(
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help=f"Where to. Default: {PAGE} in the home."),
    ] = None,
    checks: Annotated[
        bool, typer.Option(help="Ask every check and keep the answers, or show those there are.")
    ] = True,
    home: Home = None,
) -> None:
    """Draw the dashboard: days, late rows, throughput, checks, tables; one page for any browser.

    Examples:
        rivermark dashboard
        rivermark dashboard --out today.html --no-checks
    """
    settings, found = settings_for(home), topology()
    began = time.monotonic()
    with err().status("Looking at streams and tables"):
        drawn = refresh(settings, found, datetime.now(UTC), to=to, ask=checks)
    facts = drawn.facts
    broken = sum(not looks[-1].held for looks in facts.checks)
    out().print(plain(f"page: {drawn.path}"))
    out().print(
        plain(
            f"{len(facts.streams)} streams, {broken} of {len(facts.checks)} checks broken; "
            f"{drawn.path.stat().st_size / 1000:,.0f} kB, {time.monotonic() - began:.1f} s"
        )
    )
