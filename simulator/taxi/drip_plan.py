"""What a drip declares: rate, clock, disorder, and how its files are cut."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from simulator.disorder import Disorder
from simulator.landing.json_lines import utc_text
from simulator.landing.pace import Pace
from simulator.taxi.clock import TRAINING_CLOCK, RideClock

# Each ride has a START, an END and a fare.
EVENTS_A_RIDE: Final = 3
SECOND: Final = timedelta(seconds=1)

MILD_DISORDER: Final = Disorder(
    delay=timedelta(seconds=30),
    late=0.01,
    late_by=timedelta(minutes=2),
    duplicates=0.01,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DripPlan:
    """How the generated world reaches the landing folders.

    `rate` is events a second of wall time (STARTs, ENDs and fares together, once as many rides end
    as start), None for as fast as possible. With the clock `now` rides start at the present, as
    densely as the rate requires, and last their real minutes; with `training` they keep the
    training's times of 2020, and their time runs faster than the wall's to meet the rate.

    `lateness` is the allowed lateness of the ingest that will read: late events are held until they
    are late there, and all others are on time. Files are cut every `every` of wall time (without a
    rate: every `unpaced_span` of the events' time), at `max_rows` rows at the latest.
    """

    rate: float | None = 100.0
    clock: Literal["now", "training"] = "now"
    rides: int | None = None
    disorder: Disorder = MILD_DISORDER
    lateness: timedelta = timedelta(seconds=60)
    every: timedelta = SECOND
    unpaced_span: timedelta = timedelta(minutes=10)
    max_rows: int = 10_000

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate <= 1_000_000:
            raise ValueError(f"rate {self.rate}: above 0 and at most a million events a second")
        if self.rate is None and self.clock == "now":
            raise ValueError("the clock `now` needs a rate: time itself goes at one speed")
        if self.rides is not None and self.rides < 1:
            raise ValueError(f"{self.rides} rides: at least one, or None for rides without end")
        longest = self.disorder.delay
        if self.disorder.duplicates:
            longest += self.disorder.resend_after
        if longest > self.lateness:
            raise ValueError(
                f"events on time may arrive {longest} after they happened, beyond the allowed "
                f"lateness of {self.lateness}: they would be late without being meant to"
            )

    def ride_clock(self, now: datetime) -> RideClock:
        """When the rides start, for a drip that begins `now`."""
        if self.clock == "training" or self.rate is None:
            return TRAINING_CLOCK
        return RideClock(now, EVENTS_A_RIDE / self.rate * SECOND)

    @property
    def pace(self) -> Pace:
        """How the events' time runs past the wall's."""
        if self.clock == "now":
            return Pace(speed=1, real_time=True)
        return Pace(speed=self._training_speed)

    @property
    def file_span(self) -> timedelta:
        """How much of the events' time goes into one file."""
        if self.clock == "now":
            return self.every
        speed = self._training_speed
        return self.unpaced_span if speed is None else self.every * speed

    def declaration(self, clock: RideClock) -> dict[str, str | int | float | bool | None]:
        """Everything that what lands depends on, as flat JSON values; times in seconds."""
        disorder = {name: _flat(value) for name, value in asdict(self.disorder).items()}
        own = {
            "rate": self.rate,
            "clock": self.clock,
            "beginning": utc_text(clock.beginning),
            "rides": self.rides,
            "lateness": self.lateness.total_seconds(),
            "file_span": self.file_span.total_seconds(),
            "max_rows": self.max_rows,
        }
        return own | disorder

    @property
    def _training_speed(self) -> float | None:
        if self.rate is None:
            return None
        return self.rate / EVENTS_A_RIDE * TRAINING_CLOCK.spacing.total_seconds()


def _flat(value: timedelta | float) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else value
