"""Commands of the fraud domain: generated logins and payments, a little late, some twice."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

import typer

from assets.fraud.ingest import LOGINS, PAYMENTS, WEBHOOK
from rivermark.cli.arguments import Home
from rivermark.cli.console import out, plain
from simulator.disorder import Disorder
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.feeds import Feed
from simulator.fraud.alerts import AlertReceiver, in_words, receiving
from simulator.fraud.world import FraudWorld

QUEUES: Final = Disorder(
    delay=timedelta(seconds=10),
    late=0.005,
    late_by=timedelta(minutes=1),
    duplicates=0.02,
)


def fraud_feeds(
    world: FraudWorld, beginning: datetime, length: timedelta | None = None
) -> list[Feed]:
    """The logins and payments of a world from `beginning` on."""
    return [
        Feed(LOGINS, world.logins(beginning, length), QUEUES),
        Feed(PAYMENTS, world.payments(beginning, length), QUEUES),
    ]


def accounts(
    count: Annotated[
        int, typer.Option("--accounts", min=1, help="Number of accounts, and of cards.")
    ] = 500,
    port: Annotated[
        int | None,
        typer.Option("--alerts", metavar="PORT", min=0, help="Take alerts on this port, too."),
    ] = None,
    lasting: Lasting = None,
    home: Home = None,
) -> None:
    """Land logins and card payments as they happen, some of them fraud, until Ctrl-C.

    With --alerts a web service on this machine prints each alert that streams post to it.

    Examples:
        rivermark accounts
        rivermark accounts --accounts 2000 --for 60
        rivermark accounts --alerts 8701
    """
    world = FraudWorld(accounts=count)
    with ExitStack() as running:
        if port is not None:
            url = running.enter_context(receiving(AlertReceiver(print_alert), port))
            out().print(plain(f"alerts go to {url}; for the streams: export {WEBHOOK}={url}"))
        land_as_it_happens(
            "logins and payments", lambda now: fraud_feeds(world, now), lasting, home
        )


def print_alert(alert: dict[str, Any]) -> None:
    """Print an alert."""
    out().print(plain(f"alert: {in_words(alert)}"))
