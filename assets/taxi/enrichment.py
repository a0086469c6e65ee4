"""The START of each ride beside its fare, and the rides and fares without a partner in time.

Either side may come first, or never. Both carry the start of the ride as their time, so a partner
is looked for `WAITING` before and after. What has none is written once the watermark of both inputs
has passed that time: state never holds more than the rides and fares of about twice `WAITING`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.fares import MONEY
from assets.taxi.grid import LAST_CELL
from assets.taxi.ingest import PERSONAL, TAXI
from rivermark import Output, Suite, Table, columns, expect
from rivermark.operators import keep

WAITING: Final = timedelta(minutes=10)
"""How far the times of a ride and its fare may lie apart. The training's are equal; meters of real
feeds are not."""

WHOSE: Final = columns("ride_id long, event_time timestamp, taxi_id long, driver_id long")
WHERE: Final = columns("start_cell int, end_cell int, passenger_count int")
WHAT: Final = columns(f"payment_type string, tip {MONEY}, tolls {MONEY}, total_fare {MONEY}")
RIDE_COLUMNS: Final = StructType([*WHOSE, *WHERE])
FARE_COLUMNS: Final = StructType([*WHOSE, *WHAT])


def join_rides_to_fares(clean_rides: DataFrame, clean_fares: DataFrame) -> DataFrame:
    """One row per ride and per fare, together where they match.

    `has_ride` and `has_fare` say which sides a row has; what both carry comes from the ride first.
    """
    starts = clean_rides.transform(keep(F.col("is_start"), event_time="event_time"))
    rides = starts.select(*[F.col(c).alias(f"ride_{c}") for c in RIDE_COLUMNS.names])
    fares = clean_fares.select(*[F.col(c).alias(f"fare_{c}") for c in FARE_COLUMNS.names])
    apart = F.lit(WAITING)
    partners = (
        (F.col("ride_ride_id") == F.col("fare_ride_id"))
        & (F.col("fare_event_time") >= F.col("ride_event_time") - apart)
        & (F.col("fare_event_time") <= F.col("ride_event_time") + apart)
    )
    return rides.join(fares, partners, "full_outer").select(
        *[F.coalesce(f"ride_{c}", f"fare_{c}").alias(c) for c in WHOSE.names],
        *[F.col(f"ride_{c}").alias(c) for c in WHERE.names],
        *[F.col(f"fare_{c}").alias(c) for c in WHAT.names],
        F.col("ride_ride_id").isNotNull().alias("has_ride"),
        F.col("fare_ride_id").isNotNull().alias("has_fare"),
    )


def pairs() -> Column:
    """Rows of both sides."""
    return F.col("has_ride") & F.col("has_fare")


def lone_rides() -> Column:
    """Rides without a fare."""
    return F.col("has_ride") & ~F.col("has_fare")


def lone_fares() -> Column:
    """Fares without a ride."""
    return ~F.col("has_ride") & F.col("has_fare")


def _table(name: str, schema: StructType, description: str) -> Table:
    return TAXI.table(
        name,
        schema,
        description=description,
        keys="ride_id",
        personal=PERSONAL,
    )


RIDES_WITH_FARES: Final = TAXI.stream(
    reads=(CLEAN_RIDES, CLEAN_FARES),
    build=join_rides_to_fares,
    writes=(
        Output(
            _table(
                "taxi/rides_with_fares",
                StructType([*WHOSE, *WHERE, *WHAT]),
                "Each ride inside the city beside what it cost, as soon as both are known.",
            ),
            pairs,
        ),
        Output(
            _table(
                "taxi/unmatched_rides",
                RIDE_COLUMNS,
                "Rides inside the city whose fare did not come in time.",
            ),
            lone_rides,
            Suite(
                expectations=(expect.between("start_cell", 0, LAST_CELL),),
                may_be_empty=True,
            ),
        ),
        Output(
            _table(
                "taxi/unmatched_fares",
                FARE_COLUMNS,
                "Fares whose ride did not come in time, or lies outside the city.",
            ),
            lone_fares,
            Suite(
                expectations=(expect.between("total_fare", 0), expect.between("tip", 0)),
                may_be_empty=True,
            ),
        ),
    ),
    description="Each ride inside the city beside what it cost; rides and fares left alone.",
    margin=WAITING,
    expect=[
        expect.unique("ride_id"),
        expect.not_null("event_time"),
        expect.not_null("start_cell"),
        expect.not_null("total_fare"),
    ],
    may_be_empty=False,
)
"""Its rows are final, but not in order: a lone ride may come after a pair that is younger by twice
`WAITING` and the inputs' lateness. Readers of its tables must declare that much lateness."""
