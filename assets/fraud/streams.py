"""The streams of logins and card payments.

Where the environment names a web service as FRAUD_ALERTS, each alert is posted to it as well.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Final

from assets.fraud.cards import CardAlert, CardPattern, ManyPayments, SmallThenLarge
from assets.fraud.ingest import FRAUD, LOGINS, PAYMENTS, WEBHOOK
from assets.fraud.logins import WITHIN, GuessedPassword, GuessedPasswords
from rivermark import AnyStream, Ingest, Output, Stream, Suite, Table, expect
from rivermark.process import KeyedProcess
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


def alert_stream(
    table: Table, reads: Ingest, make: type[KeyedProcess[Any, Any]], margin: timedelta, suite: Suite
) -> Stream:
    """The stream of a pattern's alerts, which are posted to somebody where there is one."""
    return FRAUD.stream(
        reads=reads,
        build=run_process(make),
        writes=(Output(table, sinks=alert_sinks(SERVICE)),),
        margin=margin,
        suite=suite,
        restart=SOON,
    )


GUESSED_PASSWORDS: Final = alert_stream(
    FRAUD.table(
        "fraud/guessed_passwords",
        GuessedPassword,
        description=(
            "Accounts that three refused logins in a row and then a successful one say may be "
            f"broken into. {delivery_of(SERVICE)}"
        ),
        keys=("account_id", "event_time"),
        personal=("account_id", "country"),
    ),
    LOGINS,
    GuessedPasswords,
    WITHIN,
    alerts_suite("account_id", "logins", 4, "four"),
)


def card_alerts(name: str, make: type[CardPattern], payments: int, description: str) -> Stream:
    """The stream of a card pattern, whose alerts are made of so many payments."""
    table = FRAUD.table(
        name,
        CardAlert,
        description=f"{description} {delivery_of(SERVICE)}",
        keys=("card_id", "event_time"),
        personal=("card_id",),
    )
    suite = alerts_suite("card_id", "payments", payments, str(payments))
    return alert_stream(table, PAYMENTS, make, timedelta(hours=1), suite)


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
