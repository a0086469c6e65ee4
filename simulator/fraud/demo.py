"""The fraud domain's part in the demo: logins and payments, and a service that takes alerts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.fraud.ingest import LOGINS, PAYMENTS, WEBHOOK
from rivermark.cli.demo_scene import LandedInput, Scene, Served
from simulator.demo_feeds import land_generated
from simulator.feeds import Feed
from simulator.fraud.alerts import AlertReceiver, in_words, receiving
from simulator.fraud.commands import fraud_feeds
from simulator.fraud.world import FraudWorld

ACCOUNTS: Final = 30
LENGTH: Final = timedelta(minutes=40)
FILE_SPAN: Final = timedelta(minutes=5)
SHOWN: Final = 3
"""Alerts that are shown; the others are counted."""


def feeds(beginning: datetime) -> list[Feed]:
    """Logins and payments from `beginning` on."""
    return fraud_feeds(FraudWorld(accounts=ACCOUNTS), beginning, LENGTH)


def land(landing: Path) -> list[LandedInput]:
    """Land logins and payments, among them passwords that are guessed and cards tried out."""
    what = {
        LOGINS: "generated logins: some passwords are guessed",
        PAYMENTS: "generated card payments: some cards are tried out",
    }
    return [*land_generated(landing, what, feeds, FILE_SPAN)]


@contextmanager
def serve() -> Iterator[Served]:
    """A web service that takes alerts, as the streams' webhook finds it."""
    receiver = AlertReceiver()
    with receiving(receiver) as url:
        yield Served({WEBHOOK: url}, lambda: arrived(url, receiver))


def arrived(url: str, receiver: AlertReceiver) -> list[str]:
    """How many alerts arrived, and the first of them; nothing where none did."""
    alerts = receiver.alerts
    if not alerts:
        return []
    first = [f"  {in_words(alert)}" for alert in alerts[:SHOWN]]
    return [f"alerts that arrived by webhook at {url}: {len(alerts)}, the first", *first]


SCENE: Final = Scene(
    land=land,
    serve=serve,
    next_commands=(
        (
            "rivermark accounts --alerts 8701",
            f"logins and payments as they happen, and the alerts of a run with {WEBHOOK}=URL",
        ),
    ),
)
