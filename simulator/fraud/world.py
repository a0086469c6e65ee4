"""A generated world of accounts and cards: what each does is a function of seed and number.

Most logins and payments are harmless. Now and then passwords or a stolen card are tried out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from simulator.crowd import events_of, first_number, span_around

COUNTRIES: Final = ("DE", "FR", "US", "JP")
MERCHANTS: Final = ("books", "coffee", "fuel", "games", "shoes")
REFUSED: Final = 0.08
"""Share of honest logins with a mistyped password."""
ATTACKS: Final = 0.05
"""Share of logins and payments that an attack follows."""
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
    def account_id(self) -> str:
        """The account's name: account_1 and so on."""
        return f"account_{self.account}"

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
    def card_id(self) -> str:
        """The card's name: card_1 and so on."""
        return f"card_{self.card}"

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        return (self.card, self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class FraudWorld:
    """Accounts, and as many cards."""

    accounts: int = 100
    seed: int = 0

    def logins(self, beginning: datetime, length: timedelta | None = None) -> Iterator[LoginEvent]:
        """Logins from `beginning` on, in order of event time; without end if no length."""
        each = (self._logins_of(n, beginning) for n in range(1, self.accounts + 1))
        return events_of(each, beginning, length)

    def payments(
        self, beginning: datetime, length: timedelta | None = None
    ) -> Iterator[PaymentEvent]:
        """Payments from `beginning` on, in order of event time; without end if no length."""
        each = (self._payments_of(n, beginning) for n in range(1, self.accounts + 1))
        return events_of(each, beginning, length)

    def _logins_of(self, account: int, at: datetime) -> Iterator[LoginEvent]:
        draw = random.Random(f"logins/{self.seed}/{account}")  # noqa: S311  # no secret
        home, number = draw.choice(COUNTRIES), first_number(at)
        while True:
            at += span_around(draw, BETWEEN)
            number += 1
            yield LoginEvent(account, number, at, draw.random() >= REFUSED, home)
            if draw.random() < ATTACKS:
                country = draw.choice(COUNTRIES)
                tries = draw.randint(2, 6)
                for n in range(tries):
                    at += span_around(draw, AT_ONCE)
                    number += 1
                    guessed = n == tries - 1 and draw.random() < 0.5
                    yield LoginEvent(account, number, at, guessed, country)

    def _payments_of(self, card: int, at: datetime) -> Iterator[PaymentEvent]:
        draw = random.Random(f"payments/{self.seed}/{card}")  # noqa: S311  # no secret
        number = first_number(at)
        while True:
            at += span_around(draw, BETWEEN)
            amounts = [draw.lognormvariate(3, 1)]
            if draw.random() < ATTACKS:
                tried_out = [0.5, draw.uniform(400, 900)]
                amounts += tried_out if draw.random() < 0.5 else [20.0] * draw.randint(3, 8)
            for n, amount in enumerate(amounts):
                at += span_around(draw, AT_ONCE) if n else timedelta(0)
                number += 1
                cents = Decimal(f"{max(amount, 0.01):.2f}")
                yield PaymentEvent(card, number, at, cents, draw.choice(MERCHANTS))
