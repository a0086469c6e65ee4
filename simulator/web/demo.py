"""The web domain's part in the demo: two hours of a shop's visitors."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.web.ingest import PAGE_VIEWS
from rivermark.cli.demo_scene import LandedInput, Scene
from simulator.demo_feeds import land_generated
from simulator.feeds import Feed
from simulator.web.commands import web_feeds
from simulator.web.world import WebWorld

VISITORS: Final = 40
LENGTH: Final = timedelta(hours=2)
"""Sessions end by half an hour of silence at most: the earlier ones are over by then."""
FILE_SPAN: Final = timedelta(minutes=10)


def feeds(beginning: datetime) -> list[Feed]:
    """The visitors' page views from `beginning` on."""
    return web_feeds(WebWorld(users=VISITORS), beginning, LENGTH)


def land(landing: Path) -> list[LandedInput]:
    """Land page views, some late, lost or sent twice."""
    what = {PAGE_VIEWS: "generated page views of a shop: some late, lost or sent twice"}
    return [*land_generated(landing, what, feeds, FILE_SPAN)]


SCENE: Final = Scene(land=land)
