"""The streams of logins and card payments."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from assets.fraud.cards import CardAlert, CardPattern, ManyPayments, SmallThenLarge
from assets.fraud.ingest import FRAUD, LOGINS, PAYMENTS
from assets.fraud.logins import WITHIN, GuessedPassword, GuessedPasswords
from rivermark import AnyStream, Stream, Suite, Table, expect
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
    reads=(LOGINS,),
    build=run_process(GuessedPasswords),
    writes=Table.of(
        GuessedPassword,
        name="fraud/guessed_passwords",
        description=(
            "Accounts that three refused logins in a row and then a successful one say may be "
            "broken into."
        ),
        event_time="event_time",
        keys=("account_id", "event_time"),
        days=FRAUD.days("event_time"),
        personal=("account_id", "country"),
        comments={
            "event_time": "When the login succeeded (UTC).",
            "since": "When the first refused login of the alert was (UTC).",
            "country": "From where the login succeeded, two letters.",
            "logins": "Numbers of the logins that made the alert.",
            "rule_version": "Version of the rule.",
        },
    ),
    margin=WITHIN,
    suite=alerts_suite("account_id", "logins", 4, "four"),
)


def card_alerts(
    name: str, make: Callable[[], CardPattern], payments: int, description: str
) -> Stream:
    """The stream of a card pattern, whose alerts are made of so many payments."""
    return FRAUD.stream(
        reads=(PAYMENTS,),
        build=run_process(make),
        writes=Table.of(
            CardAlert,
            name=name,
            description=description,
            event_time="event_time",
            keys=("card_id", "event_time"),
            days=FRAUD.days("event_time"),
            personal=("card_id",),
            comments={
                "event_time": "When the last payment of the alert was (UTC).",
                "since": "When the first payment of the alert was (UTC).",
                "rule": "The rule that the payments fit.",
                "amount": "Sum of the payments (USD).",
                "payments": "Numbers of the payments that made the alert.",
                "rule_version": "Version of the rule.",
            },
        ),
        # A minute without payments of a card resets its pattern.
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
