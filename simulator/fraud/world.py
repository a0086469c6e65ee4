"""A generated world of accounts and cards: what each does is a function of seed and number.

Most logins and payments are harmless. Now and then somebody tries out passwords or a stolen card.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import Final, TypeVar

from rivermark.testing.landing.json_lines import json_line

COUNTRIES: Final = ("DE", "FR", "US", "JP")
MERCHANTS: Final = ("books", "coffee", "fuel", "games", "shoes")
REFUSED: Final = 0.08
"""Share of honest logins with a mistyped password."""
ATTACKS: Final = 0.05
"""Share of logins and payments after which somebody else tries."""
BETWEEN: Final = timedelta(minutes=4)
"""Mean time between two logins of an account, two payments of a card."""
AT_ONCE: Final = timedelta(seconds=6)
"""Mean time between two tries of a program."""


@dataclass(frozen=True, slots=True)
class LoginEvent:
    """A login; its event time is in UTC, to the millisecond."""

    account: int
    number: int
    event_time: datetime
    succeeded: bool
    country: str

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        return (self.account, self.number)


@dataclass(frozen=True, slots=True)
class PaymentEvent:
    """A card payment (USD); its event time is in UTC, to the millisecond."""

    card: int
    number: int
    event_time: datetime
    amount: Decimal
    merchant: str

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        return (self.card, self.number)


E = TypeVar("E", LoginEvent, PaymentEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class FraudWorld:
    """So many accounts and as many cards.

    Their events are numbered from the seconds since 1970 at the beginning, so that numbers go on
    rising however often the world is begun again.
    """

    accounts: int = 100
    seed: int = 0

    def logins(self, beginning: datetime, length: timedelta | None = None) -> Iterator[LoginEvent]:
        """Logins from `beginning` on, in order of event time; without end if no length."""
        each = (self._logins_of(n, beginning) for n in range(1, self.accounts + 1))
        return _within(heapq.merge(*each, key=_order), beginning, length)

    def payments(
        self, beginning: datetime, length: timedelta | None = None
    ) -> Iterator[PaymentEvent]:
        """Payments from `beginning` on, in order of event time; without end if no length."""
        each = (self._payments_of(n, beginning) for n in range(1, self.accounts + 1))
        return _within(heapq.merge(*each, key=_order), beginning, length)

    def _logins_of(self, account: int, at: datetime) -> Iterator[LoginEvent]:
        draw = random.Random(f"logins/{self.seed}/{account}")  # noqa: S311  # no secret
        home, number = draw.choice(COUNTRIES), int(at.timestamp())
        while True:
            at += _some(draw, BETWEEN)
            number += 1
            yield LoginEvent(account, number, at, draw.random() >= REFUSED, home)
            if draw.random() < ATTACKS:
                country = draw.choice(COUNTRIES)
                tries = draw.randint(2, 6)
                for n in range(tries):
                    at += _some(draw, AT_ONCE)
                    number += 1
                    guessed = n == tries - 1 and draw.random() < 0.5
                    yield LoginEvent(account, number, at, guessed, country)

    def _payments_of(self, card: int, at: datetime) -> Iterator[PaymentEvent]:
        draw = random.Random(f"payments/{self.seed}/{card}")  # noqa: S311  # no secret
        number = int(at.timestamp())
        while True:
            at += _some(draw, BETWEEN)
            amounts = [draw.lognormvariate(3, 1)]
            if draw.random() < ATTACKS:
                tried_out = [0.5, draw.uniform(400, 900)]
                amounts += tried_out if draw.random() < 0.5 else [20.0] * draw.randint(3, 8)
            for n, amount in enumerate(amounts):
                at += _some(draw, AT_ONCE) if n else timedelta(0)
                number += 1
                cents = Decimal(f"{max(amount, 0.01):.2f}")
                yield PaymentEvent(card, number, at, cents, draw.choice(MERCHANTS))


def login_line(login: LoginEvent) -> str:
    """The login as the JSON line that lands."""
    return json_line(
        {
            "account_id": f"account_{login.account}",
            "number": login.number,
            "event_time": login.event_time,
            "succeeded": login.succeeded,
            "country": login.country,
        }
    )


def payment_line(payment: PaymentEvent) -> str:
    """The payment as the JSON line that lands."""
    return json_line(
        {
            "card_id": f"card_{payment.card}",
            "number": payment.number,
            "event_time": payment.event_time,
            "amount": payment.amount,
            "merchant": payment.merchant,
        }
    )


def _order(event: LoginEvent | PaymentEvent) -> tuple[datetime, tuple[int, ...]]:
    return event.event_time, event.key


def _within(events: Iterator[E], beginning: datetime, length: timedelta | None) -> Iterator[E]:
    if length is None:
        return events
    return takewhile(lambda event: event.event_time < beginning + length, events)


def _some(draw: random.Random, mean: timedelta) -> timedelta:
    """A span drawn around a mean, whole milliseconds, at least one."""
    millis = draw.expovariate(1 / (mean / timedelta(milliseconds=1)))
    return timedelta(milliseconds=1 + int(millis))
