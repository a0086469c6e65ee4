"""How many records break each rule, by file and New York day: where a jump between months shows."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.trips.columns import COUNT, DAY, SERVICE, TEXT, day_of, schema
from assets.taxi.trips.counting import count_of, is_flagged
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.rules import FLAGGED
from assets.taxi.trips.twins import with_service
from rivermark import expect

COLUMN_OF_RULE: Final = {
    "negative_amount": "total",
    "refund": "total",
    "flex_fare": "total",
    "absurd_distance": "distance_miles",
    "zero_distance": "distance_miles",
    "zero_passengers": "passengers",
    "too_many_passengers": "passengers",
    "unknown_rate_code": "rate_code",
    "unknown_pickup_zone": "pickup_zone_id",
    "unknown_dropoff_zone": "dropoff_zone_id",
}
"""The column whose emptiness keeps a rule from judging; other rules look at times, never empty."""

JUMPS: Final = """
    WITH months AS (
        SELECT service, rule, date_trunc('month', local_day) AS month,
               sum(broken) AS broken, sum(broken) + sum(good) AS judged
        FROM {batch} GROUP BY service, rule, date_trunc('month', local_day)
    ), shares AS (
        SELECT *, broken / nullif(judged, 0) AS share,
               lag(broken / nullif(judged, 0))
                   OVER (PARTITION BY service, rule ORDER BY month) AS before
        FROM months WHERE judged >= 100
    )
    SELECT service, rule, month, broken, judged, share, before
    FROM shares WHERE abs(share - before) > 0.1
"""
"""Rules whose share of a month's records is a tenth of all higher or lower than in the month before
that there is: zero passengers went from 0 to 15.8 % in the yellow samples of January and February
2019. Months with fewer than 100 records that a rule could judge are not compared."""

TRIP_QUALITY_DAY: Final = schema(
    *DAY,
    SERVICE,
    ("file", TEXT, "File that held the records."),
    ("rule", TEXT, "The rule's name."),
    ("records", COUNT, "Records looked at, repeats and refunds among them."),
    ("empty", COUNT, "Records in which the rule's column is empty, so that it says nothing."),
    ("broken", COUNT, "Records that break the rule."),
    ("good", COUNT, "Records that the rule judged and found in order."),
)


def by_rule(records: DataFrame) -> DataFrame:
    """Count per day, service, file and rule the records that are empty, broken and good."""
    names = [rule.name for rule in FLAGGED]
    counts = [F.count("*").alias("records")]
    for name in names:
        counts.append(count_of(is_flagged(name)).alias(f"broken_{name}"))
        column = F.col(COLUMN_OF_RULE.get(name, "pickup_at"))
        counts.append(count_of(column.isNull() & ~is_flagged(name)).alias(f"empty_{name}"))
    rows = [
        F.struct(
            F.lit(name).alias("rule"),
            F.col(f"empty_{name}").alias("empty"),
            F.col(f"broken_{name}").alias("broken"),
            (F.col("records") - F.col(f"empty_{name}") - F.col(f"broken_{name}")).alias("good"),
        )
        for name in names
    ]
    days = [name for name, _, _ in DAY]
    return (
        records.transform(with_service)
        .groupBy(*day_of(F.col("pickup_at")), "service", F.col("_file").alias("file"))
        .agg(*counts)
        .select(*days, "service", "file", "records", F.inline(F.array(*rows)))
        .select(*TRIP_QUALITY_DAY.names)
    )


TRIP_QUALITY: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=by_rule,
    writes=TLC.table(
        "taxi/trip_quality",
        TRIP_QUALITY_DAY,
        description=(
            "Records that break each named rule, by file and New York day, with those that are "
            "empty and could not be judged. No record is dropped by these rules; sum over the days "
            "of a file to compare months."
        ),
        keys=("service", "file", "rule", "day_end"),
        event_time="day_end",
        days="day_start",
    ),
    description="Broken rules of each file and day.",
    kind="refresh",
    expect=[
        expect.unique(("file", "rule", "day_end", "service"), allow_null_share=0.05),
        expect.between("good", 0),
        expect.no_rows_where(
            "records <> empty + broken + good", name="each record is empty, broken or good"
        ),
        expect.no_rows_from(
            JUMPS, name="no rule's share jumps from month to month", severity="warning"
        ),
    ],
    may_be_empty=False,
)
