"""Who earned the most tips in each hour: sums per driver first, then the best of them.

Hours are those of UTC, by the start of the ride; fares of rides outside the city count too. An hour
is final once the watermark has reached its end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.fares import SUM
from assets.taxi.ingest import TAXI
from assets.taxi.serving import delivery, winners_sinks
from rivermark import expect
from rivermark.operators import TumblingWindow, per_window
from rivermark.quality import no_overlap

HOUR: Final = TumblingWindow(timedelta(hours=1))
MOST_TIPS: Final = 10_000
"""No driver earns so many dollars of tips in an hour."""

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ONE_HOUR: Final = expect.no_rows_where(
    "window_end <> window_start + INTERVAL 1 HOUR", name="a window is an hour"
)


def tips_per_driver(clean_fares: DataFrame) -> DataFrame:
    """Tips and fares per driver and hour; a driver without any tip still has a row, with 0."""
    return clean_fares.transform(
        per_window,
        HOUR,
        "event_time",
        "driver_id",
        tips=F.sum("tip").cast(SUM),
        fares=F.count("*"),
    )


def best_of_each_hour(driver_tips: DataFrame) -> DataFrame:
    """The driver with the most tips in each hour; of equals the lowest id."""
    best = F.max(F.struct("tips", (-F.col("driver_id")).alias("precedence")))
    return (
        driver_tips.groupBy("window_end")
        .agg(best.alias("best"), F.min("window_start").alias("window_start"))
        .select(
            "window_start",
            "window_end",
            (-F.col("best.precedence")).alias("driver_id"),
            F.col("best.tips").alias("tips"),
        )
    )


DRIVER_TIPS: Final = TAXI.stream(
    "taxi/driver_tips",
    (
        "driver_id long, window_start timestamp, window_end timestamp, "
        f"tips {SUM} COMMENT 'Sum of the tips (USD).', fares long COMMENT 'How many fares.'"
    ),
    reads=CLEAN_FARES,
    build=tips_per_driver,
    description="Tips (USD) and fares per driver and hour of UTC.",
    keys=("driver_id", "window_end"),
    personal=("driver_id",),
    expect=[
        expect.unique(("driver_id", "window_end")),
        ORDERED_WINDOW,
        ONE_HOUR,
        no_overlap("driver_id"),
        expect.between("tips", 0, MOST_TIPS),
        expect.between("fares", 1),
    ],
    may_be_empty=False,
)

TO_TOPIC: Final = winners_sinks()

HOURLY_WINNERS: Final = TAXI.stream(
    "taxi/hourly_winners",
    f"window_start timestamp, window_end timestamp, driver_id long, tips {SUM}",
    reads=DRIVER_TIPS,
    build=best_of_each_hour,
    sinks=TO_TOPIC,
    description=(
        "The driver with the most tips (USD) in each hour of UTC. "
        + delivery(TO_TOPIC, "topic", "make demo-kafka")
    ),
    keys="window_end",
    personal=("driver_id",),
    lateness=timedelta(0),
    expect=[
        expect.unique("window_end"),
        ORDERED_WINDOW,
        ONE_HOUR,
        no_overlap(()),
        expect.not_null("driver_id"),
        expect.between("tips", 0, MOST_TIPS),
    ],
    may_be_empty=False,
)
"""No lateness: all drivers of an hour are committed together, in the order of hours, so nothing of
an hour comes after it. With any lateness a winner would be known only when the next hour ends."""
