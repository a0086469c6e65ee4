"""Logins and card payments come in as JSON lines."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from assets.fraud.events import LOGIN, PAYMENT
from rivermark import Domain, expect
from rivermark.sources import FileSource

FRAUD: Final = Domain("fraud", owners=("team:fraud",), first_day=date(2020, 1, 1))

WEBHOOK: Final = "FRAUD_ALERTS"
"""The variable of the environment that holds the URL of the web service that takes alerts."""

LATENESS: Final = timedelta(seconds=30)
"""How far an event may lag behind the newest one. Alerts wait that long for what comes between."""

LOGINS: Final = FRAUD.ingest(
    "fraud/logins",
    source=FileSource(folder="fraud/logins", pattern="*.json,*.json.gz"),
    contract=LOGIN,
    lateness=LATENESS,
    description="Logins, refused ones among them, as they came, repeats among them.",
    days="event_time",
    personal=("account_id", "country"),
    expect=[
        expect.between("number", 0),
        expect.matches_regex("country", "[A-Z][A-Z]", severity="warning"),
    ],
)

PAYMENTS: Final = FRAUD.ingest(
    "fraud/payments",
    source=FileSource(folder="fraud/payments", pattern="*.json,*.json.gz"),
    contract=PAYMENT,
    lateness=LATENESS,
    description="Card payments as they came, repeats among them.",
    days="event_time",
    personal=("card_id", "merchant"),
    expect=[
        expect.between("number", 0),
        expect.between("amount", Decimal("0.01")),
        expect.between("amount", Decimal("0.01"), 100_000, severity="warning"),
    ],
)
