"""What is expected of page views as they come in, and of the sessions made from them."""

from __future__ import annotations

from typing import Final

from rivermark.model import expectations as expect
from rivermark.model.suite import Suite
from rivermark.quality.time_expectations import no_overlap

PAGE_VIEWS_SUITE: Final = Suite(
    name="web/page_views",
    expectations=(
        expect.between("number", 0),
        expect.in_set("action", ("view", "click", "purchase"), severity="warning"),
        expect.in_set("device", ("phone", "desktop"), severity="warning"),
    ),
    # Nobody lands page views unless asked to.
    may_be_empty=True,
)

SESSIONS_SUITE: Final = Suite(
    name="web/sessions",
    expectations=(
        expect.unique(("user_id", "session_start")),
        expect.pair_ordered("session_start", "session_end", strictly=True),
        no_overlap("user_id", start="session_start", end="session_end", severity="warning"),
        expect.between("events", 1),
        expect.pair_ordered("purchases", "events"),
    ),
    # Nobody lands page views unless asked to.
    may_be_empty=True,
)
