"""The longest ride from each start cell, emitted each time that it is beaten: ever, or in a day.

The table is by the day: a day can be computed again, and the state forgets those that are over.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final

from pyspark.sql import DataFrame

from assets.taxi.cleansing import CLEAN_RIDES
from assets.taxi.grid import LAST_CELL
from assets.taxi.ingest import TAXI
from rivermark import expect
from rivermark.process import ColumnType, Context, KeyedProcess, Millis, Record, ValueState
from rivermark.process.spark import run_process

MINUTE: Final = 60_000
DAY: Final = 24 * 60 * MINUTE


class FinishedRide(Record):
    """A ride at its END."""

    ride_id: int
    start_cell: int
    start_time: Millis
    event_time: Millis


class LongestRide(Record):
    """The longest ride from a cell so far, in whole minutes, at the time of its END."""

    start_cell: Annotated[int, ColumnType("int")]
    event_time: Annotated[Millis, "When the ride ended (UTC)."]
    minutes: Annotated[int, "Whole minutes from the start of the ride to its end."]
    ride_id: int


class LongestRides(KeyedProcess[FinishedRide, LongestRide]):
    """Keeps the longest ride of each cell without end: there are at most 100,000 cells.

    Rides are taken in order of their END. One of equal length does not beat the one before it.
    """

    key: ClassVar[Any] = "start_cell"
    time = "event_time"
    order = "event_time"
    hold = True
    again_for_every_ride = False
    """Whether a ride that beats nothing emits the longest one again, as a rolling maximum does."""

    longest: ValueState[LongestRide]

    def on_event(self, event: FinishedRide, ctx: Context[LongestRide]) -> None:
        """Compare a ride with the longest so far."""
        minutes = (event.event_time - event.start_time) // MINUTE
        longest = self.longest.value
        if longest is None or minutes > longest.minutes:
            longest = LongestRide(event.start_cell, event.event_time, minutes, event.ride_id)
            self.longest.value = longest
            ctx.emit(longest)
        elif self.again_for_every_ride:
            ctx.emit(longest)


def cell_and_day(event: FinishedRide) -> tuple[int, int]:
    """The cell where a ride began, and the day (UTC, since 1970) on which it ended."""
    return event.start_cell, event.event_time // DAY


class LongestRidesOfDay(LongestRides):
    """Keeps the longest ride of each cell and day, until the day is over."""

    key = staticmethod(cell_and_day)

    def on_event(self, event: FinishedRide, ctx: Context[LongestRide]) -> None:
        """Compare a ride with the longest of its day."""
        super().on_event(event, ctx)
        ctx.timers.event.register((event.event_time // DAY + 1) * DAY)

    def on_timer(self, at: int, ctx: Context[LongestRide]) -> None:
        """Forget a day that has ended."""
        self.longest.clear()


def finished(clean_rides: DataFrame) -> DataFrame:
    """The ENDs."""
    return clean_rides.where("NOT is_start")


LONGEST_RIDES: Final = TAXI.stream(
    "taxi/longest_rides",
    LongestRide,
    reads=CLEAN_RIDES,
    build=run_process(LongestRidesOfDay, prepare=finished),
    description=(
        "The longest ride (whole minutes) from each grid cell and day (UTC), each time it was "
        "beaten."
    ),
    keys=("start_cell", "ride_id"),
    # Its timers forget a day when that has ended; no result lies beyond it.
    margin=timedelta(0),
    expect=[
        expect.unique(("start_cell", "ride_id")),
        expect.between("start_cell", 0, LAST_CELL),
        expect.between("minutes", 0),
    ],
    may_be_empty=False,
)
