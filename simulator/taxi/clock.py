"""When the rides of the generated world start."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class RideClock:
    """Ride n starts at `beginning + (n - before) * spacing` (UTC); a ride lasts whole minutes.

    `before` is the number of the ride before the first one, where rides are not counted from 1.
    """

    beginning: datetime
    spacing: timedelta
    before: int = 0

    def __post_init__(self) -> None:
        if self.beginning.tzinfo is None:
            raise ValueError("the beginning of a ride clock needs a time zone")
        if self.spacing <= timedelta(0):
            raise ValueError(f"rides must be some time apart, not {self.spacing}")

    def start_of(self, ride_id: int) -> datetime:
        """The instant at which the ride starts."""
        return self.beginning + (ride_id - self.before) * self.spacing


# The training's own clock: New Year's Day 2020 at noon, a ride every 20 seconds.
TRAINING_CLOCK: Final = RideClock(datetime(2020, 1, 1, 12, tzinfo=UTC), timedelta(seconds=20))
