"""The reading as the rules see it."""

from __future__ import annotations

from decimal import Decimal

import msgspec


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Degrees Fahrenheit, exact; `event_time` in milliseconds since the epoch (UTC).

    Two readings of one sensor and `sequence` are one that was sent twice.
    """

    sensor_id: str
    event_time: int
    temperature: Decimal
    sequence: int
