"""Card fraud: a small payment that tries a card out and a large one after it; many in a row."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from assets.fraud.events import Amount, Sum
from assets.fraud.once import EachOnce
from rivermark.process import Context, Millis, Record
from rivermark.process.patterns import Match, Pattern

RULE_VERSION: Final = 1
"""Raise it with every change of these rules: alerts carry it."""

SMALL: Final = Decimal("1.00")
LARGE: Final = Decimal("500.00")
SOON: Final = timedelta(minutes=1)

MANY: Final = 5
SHORT: Final = timedelta(minutes=1)


class Payment(Record):
    """A card payment (USD)."""

    card_id: str
    number: int
    event_time: Millis
    amount: Amount


class CardAlert(Record):
    """A card to be looked at, and the payments that say so: their numbers and their sum (USD)."""

    card_id: str
    event_time: Annotated[Millis, "When the last payment of the alert was (UTC)."]
    since: Annotated[Millis, "When the first payment of the alert was (UTC)."]
    rule: Annotated[str, "The rule that the payments fit."]
    amount: Annotated[Sum, "Sum of the payments (USD)."]
    payments: Annotated[list[int], "Numbers of the payments that made the alert."]
    rule_version: Annotated[int, "Version of the rule."]


def small(payment: Payment, earlier: Match[Payment]) -> bool:
    """Whether a payment may be a trial."""
    return payment.amount < SMALL


def large(payment: Payment, earlier: Match[Payment]) -> bool:
    """Whether a payment would hurt."""
    return payment.amount > LARGE


def any_payment(payment: Payment, earlier: Match[Payment]) -> bool:
    """Every payment."""
    return True


class CardPattern(EachOnce[Payment, CardAlert]):
    """What the patterns of cards share: the key, and an alert with the payments of the match."""

    key = "card_id"
    time = "event_time"
    after_match = "skip_past_last"
    rule = ""

    def on_match(self, match: Match[Payment], ctx: Context[CardAlert]) -> None:
        """Alert with the payments that made the match."""
        payments = match.events()
        total = sum((each.amount for each in payments), Decimal(0))
        numbers = [each.number for each in payments]
        ctx.emit(
            CardAlert(ctx.key, match.end, match.start, self.rule, total, numbers, RULE_VERSION)
        )


class SmallThenLarge(CardPattern):
    """A payment of less than a dollar, and the very next one above 500, within a minute.

    Keeps small payments for a minute, or until the next payment.
    """

    rule = "small_then_large"
    pattern = Pattern.begin("small", small).next("large", large).within(SOON)


class ManyPayments(CardPattern):
    """Five payments within a minute; the next alert needs five more.

    Keeps the beginnings of such rows for a minute.
    """

    rule = "many_payments"
    pattern = Pattern.begin("payments", any_payment).times(MANY).within(SHORT)
