"""Commands of the fraud domain: generated logins and payments."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.deployment import Home
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.fraud.feeds import fraud_feeds
from simulator.fraud.world import FraudWorld


def accounts(
    count: Annotated[
        int, typer.Option("--accounts", min=1, help="So many accounts, and cards.")
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
