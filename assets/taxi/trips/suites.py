"""What is expected of the trip tables: what must hold, and which shares would be news.

Real records break rules all the time, so limits on them warn. Cuts of the files lack whole columns:
the shares of empty values are bounded for whole months, and only for what each layout has.
"""

from __future__ import annotations

from typing import Final

from assets.taxi.trips import box, payment, rules
from rivermark.model import expectations as expect
from rivermark.model.suite import Suite

MOST_MILES_A_DAY: Final = 100
"""No day's average trip is longer, once absurd records are left out."""

JUMPS: Final = """
    WITH months AS (
        SELECT service, rule, date_trunc('month', local_day) AS month,
               sum(broken) AS broken, sum(broken) + sum(good) AS judged
        FROM {batch} GROUP BY service, rule, date_trunc('month', local_day)
    ), shares AS (
        SELECT *, broken / judged AS share,
               lag(broken / judged) OVER (PARTITION BY service, rule ORDER BY month) AS before
        FROM months WHERE judged >= 100
    )
    SELECT service, rule, month, broken, judged, share, before
    FROM shares WHERE abs(share - before) > 0.1
"""
"""Rules whose share of a month's records is a tenth of all higher or lower than in the month before
that there is: zero passengers went from 0 to 15.8 % in the yellow samples of January and February
2019. Months with fewer than 100 records that a rule could judge are not compared."""

ORDERED_HOUR: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ORDERED_DAY: Final = expect.pair_ordered("day_start", "day_end", strictly=True)
KNOWN_SERVICE: Final = expect.in_set("service", ("yellow", "green"), severity="warning")
FLAGGED_ARE_TRIPS: Final = expect.no_rows_where("flagged > trips", name="flagged trips are trips")

TRIP_RECORDS_SUITE: Final = Suite(
    name="taxi/trip_records",
    expectations=(
        expect.unique(("_file", "_row")),
        expect.between(
            "passengers",
            1,
            rules.MOST_PASSENGERS,
            mostly=0.9,
            allow_null_share=0.3,
            severity="warning",
        ),
        expect.between(
            "distance_miles",
            0,
            rules.LONGEST_MILES,
            mostly=0.998,
            severity="warning",
        ),
        expect.in_set(
            "payment_type", tuple(payment.NAMES), allow_null_share=0.15, severity="warning"
        ),
        expect.between("fare", 0, mostly=0.95, allow_null_share=0.01, severity="warning"),
    ),
)

TRIPS_SUITE: Final = Suite(
    name="taxi/trips",
    expectations=(
        expect.unique(("file", "row")),
        expect.not_null("local_day"),
        expect.no_rows_where("is_repeat AND NOT is_surplus", name="a repeat is surplus"),
        expect.no_rows_where("is_refund AND NOT is_surplus", name="a refund is no trip"),
        expect.no_rows_where("is_refund AND fare >= 0", name="a refund's fare is negative"),
        KNOWN_SERVICE,
    ),
)

ZONE_HOURS_SUITE: Final = Suite(
    name="taxi/zone_hours",
    expectations=(
        ORDERED_HOUR,
        expect.not_null("local_hour"),
        expect.between("trips", 0),
        FLAGGED_ARE_TRIPS,
        expect.not_null("pickup_zone_id", mostly=0.99, severity="warning"),
        KNOWN_SERVICE,
    ),
)

TIP_HOURS_SUITE: Final = Suite(
    name="taxi/tip_hours",
    expectations=(
        ORDERED_HOUR,
        expect.no_rows_where("card_trips > trips", name="card trips are trips"),
        expect.no_rows_where("tipped_trips > card_trips", name="tipped trips are card trips"),
        expect.no_rows_where(
            "coalesce(other_tips, 0) <> 0",
            name="tips are recorded for cards only",
            at_most=10,
            severity="warning",
        ),
        KNOWN_SERVICE,
    ),
)

PAYMENT_DAYS_SUITE: Final = Suite(
    name="taxi/payment_days",
    expectations=(
        ORDERED_DAY,
        expect.in_set("hours_in_day", (23, 24, 25)),
        expect.not_null("payment"),
        FLAGGED_ARE_TRIPS,
        KNOWN_SERVICE,
    ),
)

LOCAL_DAYS_SUITE: Final = Suite(
    name="taxi/local_days",
    expectations=(
        ORDERED_DAY,
        expect.in_set("hours_in_day", (23, 24, 25)),
        expect.no_rows_where("records <> trips + surplus", name="a record is a trip or surplus"),
        expect.no_rows_where("repeats + refunds > surplus", name="repeats, refunds are surplus"),
        expect.between("average_miles", 0, MOST_MILES_A_DAY, allow_null_share=0.01),
        FLAGGED_ARE_TRIPS,
        KNOWN_SERVICE,
    ),
)

TRIP_QUALITY_SUITE: Final = Suite(
    name="taxi/trip_quality",
    expectations=(
        expect.unique(("file", "rule", "day_end", "service"), allow_null_share=0.05),
        expect.between("good", 0),
        expect.no_rows_where(
            "records <> empty + broken + good", name="each record is empty, broken or good"
        ),
        expect.no_rows_from(
            JUMPS, name="no rule's share jumps from month to month", severity="warning"
        ),
    ),
)

DEBS_TRIPS_SUITE: Final = Suite(
    name="taxi/debs_trips",
    expectations=(
        expect.unique(("medallion", "driver", "pickup_at")),
        expect.between("pickup_longitude", box.WEST, box.EAST),
        expect.between("dropoff_longitude", box.WEST, box.EAST),
        expect.between("pickup_latitude", box.SOUTH, box.NORTH),
        expect.between("dropoff_latitude", box.SOUTH, box.NORTH),
        expect.in_set("payment", ("CSH", "CRD", "UNK"), severity="warning"),
    ),
    may_be_empty=True,
)

SEABORN_TRIPS_SUITE: Final = Suite(
    name="taxi/seaborn_trips",
    expectations=(
        expect.pair_ordered("pickup_at", "dropoff_at"),
        expect.between("fare", 0, 200),
        expect.in_set("color", ("yellow", "green")),
    ),
    may_be_empty=True,
)

PASSENGER_COUNTS_SUITE: Final = Suite(
    name="taxi/passenger_counts",
    expectations=(
        expect.unique(("bucket_start",)),
        expect.between("passengers", 0, 100_000, severity="warning"),
    ),
    may_be_empty=True,
)
