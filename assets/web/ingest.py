"""Page views come in as JSON lines."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from assets.web.page_views import PAGE_VIEW
from rivermark import Domain, expect
from rivermark.sources import FileSource

WEB: Final = Domain("web", owners=("team:web",), first_day=date(2020, 1, 1))

LATENESS: Final = timedelta(minutes=1)
"""How far a page view may lag behind the newest one: phones send when they have a network."""

PAGE_VIEWS: Final = WEB.ingest(
    "web/page_views",
    source=FileSource(folder="web/page_views", pattern="*.json,*.json.gz"),
    contract=PAGE_VIEW,
    lateness=LATENESS,
    description="Page views, clicks and purchases as they came, repeats among them.",
    days="event_time",
    personal=("user_id",),
    expect=[
        expect.between("number", 0),
        expect.in_set("action", ("view", "click", "purchase"), severity="warning"),
        expect.in_set("device", ("phone", "desktop"), severity="warning"),
    ],
)
