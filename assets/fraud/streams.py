"""The streams of logins and card payments.

Where the environment names a web service as FRAUD_ALERTS, each alert is posted to it as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from assets.fraud.cards import CardAlert, CardPattern, ManyPayments, SmallThenLarge
from assets.fraud.ingest import FRAUD, LOGINS, PAYMENTS, WEBHOOK
from assets.fraud.logins import WITHIN, GuessedPassword, GuessedPasswords
from rivermark import AnyStream, Stream, Suite, expect
from rivermark.process.spark import run_process
from rivermark.restart import GrowingDelay
from rivermark.sinks import Sink, WebhookSink


def alerts_suite(key: str, events: str, count: int, in_words: str) -> Suite:
    """What is expected of alerts, of which each is made of so many events."""
    return Suite(
        expectations=(
            expect.unique((key, "event_time")),
            expect.pair_ordered("since", "event_time"),
            expect.no_rows_where(
                f"len({events}) <> {count}", name=f"{in_words} {events} make an alert"
            ),
            expect.not_null("rule_version"),
        ),
        may_be_empty=True,
    )


def alert_sinks(service: str | None) -> tuple[Sink, ...]:
    """Where alerts go beside their tables: to the service that the environment names, if any."""
    return (WebhookSink(url=f"${WEBHOOK}"),) if service else ()


def delivery_of(service: str | None) -> str:
    """Where alerts go, for the page of their table."""
    if service:
        return f"Each is posted to the web service that {WEBHOOK} names."
    return f"Posted nowhere: {WEBHOOK} names no web service (`rivermark accounts --alerts 8701`)."


SERVICE: Final = os.environ.get(WEBHOOK)
SOON: Final = GrowingDelay(first=timedelta(seconds=1), longest=timedelta(seconds=30), attempts=8)
"""An alert is of use soon: started again after a second, and a person is told after 3 minutes."""


GUESSED_PASSWORDS: Final = FRAUD.stream(
    "fraud/guessed_passwords",
    GuessedPassword,
    reads=LOGINS,
    build=run_process(GuessedPasswords),
    sinks=alert_sinks(SERVICE),
    description=(
        "Accounts that three refused logins in a row and then a successful one say may be "
        f"broken into. {delivery_of(SERVICE)}"
    ),
    keys=("account_id", "event_time"),
    personal=("account_id", "country"),
    margin=WITHIN,
    restart=SOON,
    suite=alerts_suite("account_id", "logins", 4, "four"),
)


def card_alerts(
    name: str, make: Callable[[], CardPattern], payments: int, description: str
) -> Stream:
    """The stream of a card pattern, whose alerts are made of so many payments."""
    return FRAUD.stream(
        name,
        CardAlert,
        reads=PAYMENTS,
        build=run_process(make),
        sinks=alert_sinks(SERVICE),
        description=f"{description} {delivery_of(SERVICE)}",
        keys=("card_id", "event_time"),
        personal=("card_id",),
        margin=timedelta(hours=1),
        restart=SOON,
        suite=alerts_suite("card_id", "payments", payments, str(payments)),
    )


TRIED_OUT_CARDS: Final = card_alerts(
    "fraud/tried_out_cards",
    SmallThenLarge,
    2,
    "Cards with a payment below a dollar and the very next one above 500, within a minute.",
)

RAPID_PAYMENTS: Final = card_alerts(
    "fraud/rapid_payments",
    ManyPayments,
    5,
    "Cards with five payments within a minute.",
)

FRAUD_STREAMS: Final[tuple[AnyStream, ...]] = (
    LOGINS,
    PAYMENTS,
    GUESSED_PASSWORDS,
    TRIED_OUT_CARDS,
    RAPID_PAYMENTS,
)
