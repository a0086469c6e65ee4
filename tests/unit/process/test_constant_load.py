"""State under a constant load: as large after a week as after two days."""

from __future__ import annotations

from assets.taxi.long_rides import LongRides
from rivermark.process import BEGINNING
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from tests.unit.assets.taxi.test_long_rides import ended, started
from tests.unit.process.readings import HOUR, MINUTE, NOON


def test_state_is_flat_over_a_week() -> None:
    engine = Engine(LongRides())
    state: bytes | None = None
    watermark = BEGINNING
    sizes: list[int] = []
    for hour in range(7 * 24):
        now = NOON + hour * HOUR
        rows = []
        for n in range(60):
            ride = 1_000_000 + hour * 60 + n
            at = now + n * MINUTE
            if n % 10 != 1:  # every tenth ride loses its START, every tenth its END
                rows.append(started(ride, at))
            if n % 10 != 2:
                rows.append(ended(ride, at + (5 + n) * MINUTE))
        rows.sort(key=lambda each: each.event_time)
        arrivals = Arrivals(
            "events", rows, [each.ride_id for each in rows], [each.event_time for each in rows]
        )
        state = engine.run(state, [arrivals], watermark, 0).state
        watermark = max(each.event_time for each in rows) - MINUTE
        sizes.append(len(state or b""))

    after_two_days = sizes[48:]
    assert max(after_two_days) <= 1.01 * min(after_two_days)
    assert min(after_two_days) > 500
