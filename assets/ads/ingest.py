"""Clicks on ads come in as JSON lines."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from rivermark import Contract, Domain, Field, expect
from rivermark.sources import FileSource

ADS: Final = Domain("ads", owners=("team:ads",), first_day=date(2020, 1, 1))

LATENESS: Final = timedelta(seconds=30)
"""How far a click may lag behind the newest one."""

AD_CLICK: Final = Contract(
    fields=(
        Field("user_id", "string", required=True, description="Who clicked."),
        Field(
            "number",
            "long",
            required=True,
            description="The user's own count of clicks: a repeat has that of the original.",
        ),
        Field("ad_id", "string", required=True, description="The ad."),
        Field("event_time", "timestamp", required=True, description="When it was (UTC)."),
    ),
    event_time="event_time",
    keys=("user_id", "number"),
)

AD_CLICKS: Final = ADS.ingest(
    "ads/clicks",
    source=FileSource(folder="ads/clicks", pattern="*.json,*.json.gz"),
    contract=AD_CLICK,
    lateness=LATENESS,
    description="Clicks on ads as they came, repeats among them.",
    days="event_time",
    personal=("user_id",),
    expect=[
        expect.between("number", 0),
    ],
)
