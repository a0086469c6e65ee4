"""Logins and payments on their way: a little late, and some of them twice."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from assets.fraud.ingest import LOGINS, PAYMENTS
from simulator.disorder import Disorder
from simulator.feeds import Feed
from simulator.fraud.world import FraudWorld

QUEUES: Final = Disorder(
    delay=timedelta(seconds=10),
    late=0.005,
    late_by=timedelta(minutes=1),
    duplicates=0.02,
)


def fraud_feeds(
    world: FraudWorld, beginning: datetime, length: timedelta | None = None
) -> list[Feed]:
    """The logins and payments of a world from `beginning` on."""
    return [
        Feed(LOGINS, world.logins(beginning, length), QUEUES),
        Feed(PAYMENTS, world.payments(beginning, length), QUEUES),
    ]
