"""The part that commands share which land generated feeds in real time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rivermark.cli.console import out, plain
from rivermark.cli.deployment import local_landing, settings_for
from rivermark.runtime.supervision.hosting import stop_on_signals
from simulator.feeds import Feed, drip_feeds
from simulator.landing.commands import landed_sentence, landing_progress, stop_after
from simulator.landing.pace import Pace

Lasting = Annotated[
    float | None, typer.Option("--for", metavar="SECONDS", min=0, help="Stop after this time.")
]


def land_as_it_happens(
    what: str,
    feeds: Callable[[datetime], Sequence[Feed]],
    lasting: float | None,
    home: Path | None,
) -> None:
    """Land the feeds that begin now, in real time, until Ctrl-C or for so many seconds."""
    landing = local_landing(settings_for(home))
    with (
        stop_on_signals() as stop,
        stop_after(lasting, stop),
        landing_progress(f"{what} to {landing}") as heard,
    ):
        done = drip_feeds(
            landing,
            feeds(datetime.now(UTC)),
            pace=Pace(speed=1, real_time=True),
            stop=stop,
            on_progress=heard,
        )
    out().print(plain(landed_sentence(done)))
