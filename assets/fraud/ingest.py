"""Logins and card payments come in as JSON lines."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from assets.fraud.events import LOGIN, PAYMENT
from assets.fraud.suites import LOGINS_SUITE, PAYMENTS_SUITE
from rivermark.model.file_source import FileSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

GROUP: Final = "fraud"
OWNERS: Final = ("team:fraud",)

LATENESS: Final = timedelta(seconds=30)
"""How far an event may lag behind the newest one. Alerts wait that long for what comes between."""

FIRST_DAY: Final = date(2020, 1, 1)

LOGINS: Final = Ingest(
    name="fraud/logins",
    source=FileSource(folder="fraud/logins", pattern="*.json,*.json.gz"),
    contract=LOGIN,
    lateness=LATENESS,
    description="Logins, refused ones among them, as they came, repeats among them.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("account_id", "country"),
    owners=OWNERS,
    suite=LOGINS_SUITE,
)

PAYMENTS: Final = Ingest(
    name="fraud/payments",
    source=FileSource(folder="fraud/payments", pattern="*.json,*.json.gz"),
    contract=PAYMENT,
    lateness=LATENESS,
    description="Card payments as they came, repeats among them.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    personal=("card_id", "merchant"),
    owners=OWNERS,
    suite=PAYMENTS_SUITE,
)
