"""What a page view is: one visitor looks at a page, clicks on it or buys."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import LongType, StringType, TimestampType

from rivermark.model.contract import Contract, Field

PAGE_VIEW: Final = Contract(
    fields=(
        Field("user_id", StringType(), required=True, description="The visitor."),
        Field(
            "number",
            LongType(),
            required=True,
            description="The visitor's own count of events: a gap is a lost one.",
        ),
        Field("event_time", TimestampType(), required=True, description="When it was (UTC)."),
        Field("page", StringType(), required=True, description="Path of the page."),
        Field("action", StringType(), required=True, description="view, click or purchase."),
        Field("device", StringType(), required=True, description="phone or desktop."),
    ),
    event_time="event_time",
    keys=("user_id", "number"),
)
