"""The longest ride from each start cell, told each time that it is beaten: ever, or in a day.

The table is by the day: a day can be computed again, and the state forgets those that are over.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, LongType, StructField, StructType, TimestampType

from assets.taxi.cleansing import CLEAN_RIDES
from assets.taxi.event_suites import LONGEST_RIDES_SUITE
from assets.taxi.ingest import FIRST_DAY, GROUP, OWNERS
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.spark import run_process

MINUTE: Final = 60_000
DAY: Final = 24 * 60 * MINUTE


class FinishedRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride at its END; times in milliseconds since the epoch (UTC)."""

    ride_id: int
    start_cell: int
    start_time: int
    event_time: int


class LongestRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The longest ride from a cell so far, in whole minutes, at the time of its END."""

    start_cell: int
    event_time: int
    minutes: int
    ride_id: int


class LongestRides(KeyedProcess[FinishedRide, LongestRide]):
    """Keeps the longest ride of each cell for good: there are at most 100,000 cells.

    Rides are taken in order of their END. One of equal length does not beat the one before it.
    """

    key: ClassVar[Any] = "start_cell"
    time = "event_time"
    order = "event_time"
    hold = True
    again_for_every_ride = False
    """Whether a ride that beats nothing gives the longest one again, as a rolling maximum does."""

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
        """The day is over."""
        self.longest.clear()


def finished(clean_rides: DataFrame) -> DataFrame:
    """The ENDs."""
    return clean_rides.where("NOT is_start")


SHOWN: Final = (
    "The longest ride (whole minutes) from each grid cell and day (UTC), each time it was beaten."
)

LONGEST_RIDES: Final = Stream(
    name="taxi/longest_rides",
    reads=(CLEAN_RIDES,),
    build=run_process(LongestRidesOfDay, prepare=finished),
    writes=Table(
        name="taxi/longest_rides",
        schema=StructType(
            [
                StructField("start_cell", IntegerType(), True),
                StructField("event_time", TimestampType(), True),
                StructField("minutes", LongType(), True),
                StructField("ride_id", LongType(), True),
            ]
        ),
        description=SHOWN,
        event_time="event_time",
        keys=("start_cell", "ride_id"),
        days=Daily(column="event_time", start=FIRST_DAY),
    ),
    description=SHOWN,
    group=GROUP,
    suite=LONGEST_RIDES_SUITE,
    owners=OWNERS,
)
