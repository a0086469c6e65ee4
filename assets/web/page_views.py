"""What a page view is: one visitor looks at a page, clicks on it or buys."""

from __future__ import annotations

from typing import Final

from rivermark import Contract, Field

PAGE_VIEW: Final = Contract(
    fields=(
        Field("user_id", "string", required=True, description="The visitor."),
        Field(
            "number",
            "long",
            required=True,
            description="The visitor's own count of events: a gap is a lost one.",
        ),
        Field("event_time", "timestamp", required=True, description="When it was (UTC)."),
        Field("page", "string", required=True, description="Path of the page."),
        Field("action", "string", required=True, description="view, click or purchase."),
        Field("device", "string", required=True, description="phone or desktop."),
    ),
    event_time="event_time",
    keys=("user_id", "number"),
)
