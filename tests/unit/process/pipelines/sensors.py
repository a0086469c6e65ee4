"""Temperature readings, and stories of them for the property tests."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from tests.unit.process.pipelines.times import SECOND


class Reading(msgspec.Struct, frozen=True):
    """Degrees Fahrenheit at an instant in milliseconds since the epoch."""

    id: str
    timestamp: int
    temperature: float


def reading(second: float, temperature: float = 50.0, id: str = "sensor_1") -> Reading:  # noqa: A002
    """A reading some seconds after the epoch."""
    return Reading(id, round(second * SECOND), temperature)


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
