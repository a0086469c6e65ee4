"""Page views come in as JSON lines."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from assets.web.page_views import PAGE_VIEW
from assets.web.suites import PAGE_VIEWS_SUITE
from rivermark.model.file_source import FileSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

GROUP: Final = "web"
OWNERS: Final = ("team:web",)

LATENESS: Final = timedelta(minutes=1)
"""How far a page view may lag behind the newest one: phones send when they have a network."""

FIRST_DAY: Final = date(2020, 1, 1)

PAGE_VIEWS: Final = Ingest(
    name="web/page_views",
    source=FileSource(folder="web/page_views", pattern="*.json,*.json.gz"),
    contract=PAGE_VIEW,
    lateness=LATENESS,
    description="Page views, clicks and purchases as they came, repeats among them.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("user_id",),
    owners=OWNERS,
    suite=PAGE_VIEWS_SUITE,
)
