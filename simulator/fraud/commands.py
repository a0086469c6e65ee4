"""Commands of the fraud domain: generated logins and payments, a little late, some twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from assets.fraud.ingest import LOGINS, PAYMENTS
from rivermark.cli.arguments import Home
from simulator.disorder import Disorder
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.feeds import Feed
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
    lasting: Lasting = None,
    home: Home = None,
) -> None:
    """Land logins and card payments as they happen, some of them fraud, until Ctrl-C.

    Examples:
        rivermark accounts
        rivermark accounts --accounts 2000 --for 60
    """
    world = FraudWorld(accounts=count)
    land_as_it_happens("logins and payments", lambda now: fraud_feeds(world, now), lasting, home)
