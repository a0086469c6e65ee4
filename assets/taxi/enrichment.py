"""The START of each ride beside its fare, and what found no partner in time.

Either side may come first, or never. Both carry the start of the ride as their time, so a partner
is looked for `WAITING` before and after. What has none is written once the watermark of both inputs
has passed that time: state never holds more than the rides and fares of about twice `WAITING`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.event_suites import (
    RIDES_WITH_FARES_SUITE,
    UNMATCHED_FARES_SUITE,
    UNMATCHED_RIDES_SUITE,
)
from assets.taxi.fares import MONEY
from assets.taxi.ingest import FIRST_DAY, GROUP, OWNERS
from rivermark.model.stream import Output, Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.keep import keep

WAITING: Final = timedelta(minutes=10)
"""How far the times of a ride and its fare may lie apart. The training's are equal; meters of real
feeds are not."""

WHOSE: Final = (
    StructField("ride_id", LongType(), True),
    StructField("event_time", TimestampType(), True),
    StructField("taxi_id", LongType(), True),
    StructField("driver_id", LongType(), True),
)
WHERE: Final = (
    StructField("start_cell", IntegerType(), True),
    StructField("end_cell", IntegerType(), True),
    StructField("passenger_count", IntegerType(), True),
)
WHAT: Final = (
    StructField("payment_type", StringType(), True),
    StructField("tip", MONEY, True),
    StructField("tolls", MONEY, True),
    StructField("total_fare", MONEY, True),
)
RIDE_COLUMNS: Final = tuple(f.name for f in (*WHOSE, *WHERE))
FARE_COLUMNS: Final = tuple(f.name for f in (*WHOSE, *WHAT))


def join_rides_to_fares(clean_rides: DataFrame, clean_fares: DataFrame) -> DataFrame:
    """One row per ride and per fare, together where they found each other.

    `has_ride` and `has_fare` tell which sides a row has; what both carry comes from the ride first.
    """
    starts = clean_rides.transform(keep(F.col("is_start"), event_time="event_time"))
    rides = starts.select(*[F.col(c).alias(f"ride_{c}") for c in RIDE_COLUMNS])
    fares = clean_fares.select(*[F.col(c).alias(f"fare_{c}") for c in FARE_COLUMNS])
    apart = F.lit(WAITING)
    partners = (
        (F.col("ride_ride_id") == F.col("fare_ride_id"))
        & (F.col("fare_event_time") >= F.col("ride_event_time") - apart)
        & (F.col("fare_event_time") <= F.col("ride_event_time") + apart)
    )
    return rides.join(fares, partners, "full_outer").select(
        *[F.coalesce(f"ride_{f.name}", f"fare_{f.name}").alias(f.name) for f in WHOSE],
        *[F.col(f"ride_{f.name}").alias(f.name) for f in WHERE],
        *[F.col(f"fare_{f.name}").alias(f.name) for f in WHAT],
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


def _table(name: str, columns: tuple[StructField, ...], description: str) -> Table:
    return Table(
        name=name,
        schema=StructType([*columns]),
        description=description,
        event_time="event_time",
        keys=("ride_id",),
        days=Daily(column="event_time", start=FIRST_DAY),
        personal=("driver_id", "taxi_id"),
    )


RIDES_WITH_FARES: Final = Stream(
    name="taxi/rides_with_fares",
    reads=(CLEAN_RIDES, CLEAN_FARES),
    build=join_rides_to_fares,
    writes=(
        Output(
            _table(
                "taxi/rides_with_fares",
                (*WHOSE, *WHERE, *WHAT),
                "Each ride inside the city beside what it cost, as soon as both are known.",
            ),
            pairs,
        ),
        Output(
            _table(
                "taxi/unmatched_rides",
                (*WHOSE, *WHERE),
                "Rides inside the city whose fare did not come in time.",
            ),
            lone_rides,
            UNMATCHED_RIDES_SUITE,
        ),
        Output(
            _table(
                "taxi/unmatched_fares",
                (*WHOSE, *WHAT),
                "Fares whose ride did not come in time, or lies outside the city.",
            ),
            lone_fares,
            UNMATCHED_FARES_SUITE,
        ),
    ),
    description="Each ride inside the city beside what it cost; rides and fares left alone.",
    group=GROUP,
    margin=WAITING,
    suite=RIDES_WITH_FARES_SUITE,
    owners=OWNERS,
)
"""Its rows are final, but not in order: a lone ride may come after a pair that is younger by twice
`WAITING` and the inputs' lateness. Whoever reads its tables must declare that much lateness."""
