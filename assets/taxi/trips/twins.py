"""Records that tell of one trip twice: repeats of a record, and refunds beside what they refund.

A trip has no id in TLC's files. Two records are twins when service, vendor, both times and both
zones agree. Twins have the same pickup, so they lie in one local day and a day can be recomputed
alone. Assumption: no two trips of one vendor share all of these (none seen in full records; among
records cut down to five columns, where the vendor is missing, it cannot be told).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from assets.taxi.trips.contract import AMOUNTS, CODES
from assets.taxi.trips.service import service_of

TRIP: Final = (
    "service",
    "pickup_at",
    "dropoff_at",
    "vendor",
    "pickup_zone_id",
    "dropoff_zone_id",
)
"""What twins share."""

RECORD: Final = (
    *TRIP,
    "distance_miles",
    *(f.name for f in (*CODES, *AMOUNTS) if f.name not in ("vendor", "color")),
)
"""What a repeat shares as well: everything it says, but for the spelling of its times."""


def with_service(records: DataFrame) -> DataFrame:
    """Add `service`: yellow, green, or null where nothing tells."""
    return records.withColumn("service", service_of(F.col("color"), F.col("_file")))


def mark_twins(records: DataFrame) -> DataFrame:
    """Add `is_repeat`, `is_surplus`, `is_refund` and `is_refunded`; no record is dropped.

    - `is_repeat`: an equal record stands before it (by file and line): the same trips came twice.
    - `is_surplus`: another record of a trip that is counted already. One of each trip's records is
      not: the first of those with the highest fare, so never the refund. Repeats are surplus.
    - `is_refund`: a negative fare and total with a twin of positive fare. `is_refunded`: that twin.
      A negative fare within a positive total is a trip (a flex fare) and refunds nothing.
    """
    twins = Window.partitionBy(*TRIP)
    in_order = (F.col("_file"), F.col("_row"))
    repeats = Window.partitionBy(*RECORD).orderBy(*in_order)
    dearest_first = twins.orderBy(F.desc_nulls_last("fare"), F.desc_nulls_last("total"), *in_order)
    refunds = F.coalesce((F.col("fare") < 0) & (F.col("total") < 0), F.lit(False))
    refunded = F.max(refunds).over(twins) & (F.max("fare").over(twins) > 0)
    return records.withColumns(
        {
            "is_repeat": F.row_number().over(repeats) > 1,
            "is_surplus": F.row_number().over(dearest_first) > 1,
            "is_refund": F.coalesce(refunded & refunds, F.lit(False)),
            "is_refunded": F.coalesce(refunded & (F.col("fare") > 0), F.lit(False)),
        }
    )


def marked(records: DataFrame) -> DataFrame:
    """Trip records with their service and their twins marked: what every published table counts."""
    return records.transform(with_service).transform(mark_twins)
