"""Commands of the web domain: generated visitors, whose phones send late, twice, or not at all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from assets.web.ingest import PAGE_VIEWS
from rivermark.cli.arguments import Home
from simulator.disorder import Disorder
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.feeds import Feed
from simulator.web.world import WebWorld

MOBILE_NETWORK: Final = Disorder(
    delay=timedelta(seconds=20),
    late=0.01,
    late_by=timedelta(minutes=2),
    loss=0.01,
    duplicates=0.01,
)


def web_feeds(world: WebWorld, beginning: datetime, length: timedelta | None = None) -> list[Feed]:
    """The events of a world from `beginning` on."""
    return [Feed(PAGE_VIEWS, world.page_views(beginning, length), MOBILE_NETWORK)]


def visitors(
    users: Annotated[int, typer.Option(min=1, help="Number of visitors.")] = 500,
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
