"""Commands of the web domain: generated visitors."""

from __future__ import annotations

from typing import Annotated

import typer

from assets.feed_command import Lasting, land_as_it_happens
from assets.web.drip import web_feeds
from assets.web.world import WebWorld
from rivermark.cli.deployment import Home


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
