"""Page views on their way: phones send late, twice, or not at all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from assets.web.ingest import PAGE_VIEWS
from simulator.disorder import Disorder
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
