"""The streams of logins and card payments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from assets.fraud.cards import CardAlert, CardPattern, ManyPayments, SmallThenLarge
from assets.fraud.ingest import FRAUD, LOGINS, PAYMENTS
from assets.fraud.logins import WITHIN, GuessedPassword, GuessedPasswords
from rivermark import AnyStream, Stream, Suite, expect
from rivermark.process.spark import run_process


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


GUESSED_PASSWORDS: Final = FRAUD.stream(
    "fraud/guessed_passwords",
    GuessedPassword,
    reads=LOGINS,
    build=run_process(GuessedPasswords),
    description=(
        "Accounts that three refused logins in a row and then a successful one say may be "
        "broken into."
    ),
    keys=("account_id", "event_time"),
    personal=("account_id", "country"),
    margin=WITHIN,
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
        description=description,
        keys=("card_id", "event_time"),
        personal=("card_id",),
        margin=timedelta(hours=1),
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
