"""Stories of readings for the alert tests."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from assets.readings.alerts.reading import Reading

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def reading(second: float, degrees: object = 50, sensor: str = "sensor_1") -> Reading:
    """A reading some seconds after the epoch; another one of its sensor and time is a repeat."""
    at = round(second * SECOND)
    return Reading(sensor, at, Decimal(str(degrees)), at)


def readings(
    last_second: int = 120, coldest: int = 0, hottest: int = 120, most: int = 9
) -> st.SearchStrategy[list[Reading]]:
    """Readings of two sensors in any order of arrival."""
    one = st.builds(
        reading,
        st.integers(0, 4 * last_second).map(lambda quarter: quarter / 4),
        st.integers(2 * coldest, 2 * hottest).map(lambda half: half / 2),
        st.sampled_from(["sensor_1", "sensor_2"]),
    )
    return st.lists(one, min_size=1, max_size=most)


def plain(story: list[Reading]) -> list[tuple[str, int, Decimal]]:
    """The readings as the oracle takes them."""
    return [(each.sensor_id, each.event_time, each.temperature) for each in story]
