"""Commands of the web domain: generated visitors."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.deployment import Home
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.web.feeds import web_feeds
from simulator.web.world import WebWorld


def visitors(
    users: Annotated[int, typer.Option(min=1, help="So many visitors.")] = 500,
    lasting: Lasting = None,
    home: Home = None,
) -> None:
    """Land page views of a shop's visitors as they happen, until Ctrl-C.

    Examples:
        rivermark visitors
        rivermark visitors --users 2000 --for 60
    """
    world = WebWorld(users=users)
    land_as_it_happens("page views", lambda now: web_feeds(world, now), lasting, home)
