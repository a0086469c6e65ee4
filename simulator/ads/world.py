"""A generated world of ads: who clicks when on which, and to which campaign an ad belongs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from simulator.crowd import events_of, first_number, span_around

BETWEEN: Final = timedelta(seconds=20)
"""Mean time between two clicks of a user."""
WITHOUT: Final = 0.05
"""Share of ads whose campaign has been deleted."""


@dataclass(frozen=True, slots=True)
class AdClick:
    """One click; its event time is in UTC, to the millisecond."""

    user: int
    number: int
    ad: int
    event_time: datetime

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        return (self.user, self.number)

    @property
    def user_id(self) -> str:
        """The user's name: user_1 and so on."""
        return f"user_{self.user}"

    @property
    def ad_id(self) -> str:
        """The ad's name: ad_1 and so on."""
        return f"ad_{self.ad}"


@dataclass(frozen=True, slots=True)
class Campaign:
    """What a click on an ad is paid by: `price` in USD, a decimal as text."""

    campaign_id: str
    advertiser: str
    price: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AdWorld:
    """Users who click on ads, a few of which are clicked often."""

    users: int = 100
    ads: int = 200
    campaigns: int = 20
    seed: int = 0

    def clicks(self, beginning: datetime, length: timedelta | None = None) -> Iterator[AdClick]:
        """Clicks from `beginning` on, in order of event time; without end if no length."""
        users = (self._user(user, beginning) for user in range(1, self.users + 1))
        return events_of(users, beginning, length)

    def campaign_of(self, ad_id: str) -> Campaign | None:
        """The campaign of an ad, if it has one."""
        draw = random.Random(f"ads/{self.seed}/{ad_id}")  # noqa: S311  # no secret
        if draw.random() < WITHOUT:
            return None
        number = draw.randint(1, self.campaigns)
        price = f"0.{draw.randint(1, 9_999):04}"
        return Campaign(f"campaign_{number}", f"advertiser_{1 + number % 7}", price)

    def _user(self, user: int, at: datetime) -> Iterator[AdClick]:
        draw = random.Random(f"clicks/{self.seed}/{user}")  # noqa: S311  # no secret
        number = first_number(at)
        while True:
            at += span_around(draw, BETWEEN)
            number += 1
            yield AdClick(user, number, 1 + int(self.ads * draw.random() ** 2), at)
