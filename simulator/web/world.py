"""A generated world of a shop's visitors: what each does is a function of seed and visitor."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from simulator.crowd import events_of, first_number, span_around

PAGES: Final = ("/", "/offers", "/shoes", "/coats", "/cart")
PHONES: Final = 0.6
GO_ON: Final = 0.85
"""Share of events after which the visit goes on."""
BUYS: Final = 0.3
"""Share of visits that reach the cart and end with a purchase."""
THINKING: Final = timedelta(seconds=40)
"""Mean time between two events of a visit."""
AWAY: Final = timedelta(minutes=35)
"""Mean time between two visits: some are closer than a session's gap and belong together."""


@dataclass(frozen=True, slots=True)
class PageView:
    """One event of a visitor; its event time is in UTC, to the millisecond."""

    user: int
    number: int
    event_time: datetime
    page: str
    action: str
    device: str

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of it share."""
        return (self.user, self.number)

    @property
    def user_id(self) -> str:
        """The visitor's name: user_1 and so on."""
        return f"user_{self.user}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebWorld:
    """Visitors of a shop; each uses one device for a visit."""

    users: int = 100
    seed: int = 0

    def page_views(
        self, beginning: datetime, length: timedelta | None = None
    ) -> Iterator[PageView]:
        """Events from `beginning` on, in order of event time; without end if no length."""
        visitors = (self._visitor(user, beginning) for user in range(1, self.users + 1))
        return events_of(visitors, beginning, length)

    def _visitor(self, user: int, at: datetime) -> Iterator[PageView]:
        draw = random.Random(f"web/{self.seed}/{user}")  # noqa: S311  # no secret
        number = first_number(at)
        while True:
            at += span_around(draw, AWAY)
            device = "phone" if draw.random() < PHONES else "desktop"
            while True:
                number += 1
                page = draw.choice(PAGES)
                action = "view" if draw.random() < 0.7 else "click"
                yield PageView(user, number, at, page, action, device)
                at += span_around(draw, THINKING)
                if draw.random() >= GO_ON:
                    break
            if draw.random() < BUYS:
                number += 1
                yield PageView(user, number, at, "/cart", "purchase", device)
