"""`rivermark dashboard`: the page of streams and days, as one file, without a JVM."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rivermark.cli.arguments import Home, Json
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.model.errors import WrongUse
from rivermark.monitor.dashboard import document_server
from rivermark.monitor.dashboard.page_links import make_token, page_url
from rivermark.monitor.dashboard.refresh import PAGE, refresh


def dashboard(
    to: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help=f"File to write. Default: {PAGE} in the home."),
    ] = None,
    checks: Annotated[
        bool, typer.Option(help="Evaluate and record every check, or show the recorded results.")
    ] = True,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve it on this machine; it refreshes by itself.")
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Draw the dashboard: days, late rows, throughput, checks, tables; one page for any browser.

    JSON:
        page, streams, checks, failed, bytes, seconds

    Examples:
        rivermark dashboard
        rivermark dashboard --out today.html --no-checks
        rivermark dashboard --serve
    """
    if serve and to is not None:
        raise WrongUse("--serve has the pages of the home: leave --out away")
    began = time.monotonic()
    with err().status("Reading streams and tables"):
        settings = settings_for(home)
        drawn = refresh(settings, topology(), datetime.now(UTC), to=to, evaluate=checks)
    facts = drawn.facts
    failed = sum(not results[-1].passed for results in facts.checks)
    size, seconds = drawn.path.stat().st_size, time.monotonic() - began
    if as_json:
        counts = {"streams": len(facts.streams), "checks": len(facts.checks), "failed": failed}
        print_json({"page": drawn.path, **counts, "bytes": size, "seconds": round(seconds, 3)})
        return
    out().print(plain(f"page: {drawn.path}"))
    out().print(
        plain(
            f"{len(facts.streams)} streams, {failed} of {len(facts.checks)} checks failed; "
            f"{size / 1000:,.0f} kB, {seconds:.1f} s"
        )
    )
    if serve:
        make_token(settings)
        out().print(plain(f"served, until Ctrl-C, at {page_url(settings, drawn.path)}"))
        raise typer.Exit(document_server.main(settings))
