"""The streams of page views."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from assets.web.ingest import PAGE_VIEWS, WEB
from assets.web.sessions import Session, UserSessions
from rivermark import AnyStream, expect
from rivermark.process.spark import run_process
from rivermark.quality import no_overlap

SESSIONS: Final = WEB.stream(
    "web/sessions",
    Session,
    reads=PAGE_VIEWS,
    build=run_process(UserSessions),
    description=(
        "Sessions of visitors: events and purchases, ended by ten silent minutes on a phone "
        "and thirty on a desktop."
    ),
    keys=("user_id", "session_start"),
    event_time="session_end",
    days="session_start",
    personal=("user_id",),
    # A session that lasts longer over midnight would be cut in a day that is computed again.
    margin=timedelta(hours=6),
    expect=[
        expect.unique(("user_id", "session_start")),
        expect.pair_ordered("session_start", "session_end", strictly=True),
        no_overlap("user_id", start="session_start", end="session_end", severity="warning"),
        expect.between("events", 1),
        expect.pair_ordered("purchases", "events"),
    ],
)

WEB_STREAMS: Final[tuple[AnyStream, ...]] = (PAGE_VIEWS, SESSIONS)
