"""The command of the ads domain: clicks land while a service knows their campaigns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

import typer

from assets.ads.ingest import AD_CLICKS
from assets.ads.streams import SERVICE
from rivermark.cli.arguments import Home
from rivermark.cli.console import out, plain
from simulator.ads.service import campaign_service
from simulator.ads.world import AdWorld
from simulator.disorder import Disorder
from simulator.feed_command import Lasting, land_as_it_happens
from simulator.feeds import Feed

QUEUES: Final = Disorder(
    delay=timedelta(seconds=10),
    late=0.005,
    late_by=timedelta(minutes=1),
    duplicates=0.02,
)


def ad_feeds(world: AdWorld, beginning: datetime, length: timedelta | None = None) -> list[Feed]:
    """The clicks of a world from `beginning` on."""
    return [Feed(AD_CLICKS, world.clicks(beginning, length), QUEUES)]


def clicks(
    users: Annotated[int, typer.Option(min=1, help="Number of users.")] = 500,
    port: Annotated[int, typer.Option(min=0, help="Port of the campaign service.")] = 8700,
    lasting: Lasting = None,
    home: Home = None,
) -> None:
    """Land clicks on ads as they happen and serve their campaigns, until Ctrl-C.

    Examples:
        python -m simulator.ads
        python -m simulator.ads --users 2000 --for 60
    """
    world = AdWorld(users=users)
    with campaign_service(world, port) as url:
        out().print(plain(f"campaigns at {url}; for the streams: export {SERVICE}={url}"))
        land_as_it_happens("clicks", lambda now: ad_feeds(world, now), lasting, home)
