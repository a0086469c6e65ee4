"""Goldens of the training's exercises, from the generator's own first rides."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from simulator.taxi.fares import FareEvent, fares
from simulator.taxi.truth import HourlyTips, hourly_tips, hourly_winners, hours_closed

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)


def fare(driver: int, minute: int, tip: str) -> FareEvent:
    return FareEvent(
        ride_id=minute * 100 + driver,
        taxi_id=driver,
        driver_id=driver,
        event_time=NOON + minute * A_MINUTE,
        payment_type="CARD",
        tip=Decimal(tip),
        tolls=Decimal(0),
        total_fare=Decimal(20),
    )


def test_the_published_winners_of_six_hours() -> None:
    winners = hourly_winners(fares(1, 1_079))

    assert winners == [
        HourlyTips(NOON + timedelta(hours=1), 2013000089, Decimal(76)),
        HourlyTips(NOON + timedelta(hours=2), 2013000197, Decimal(71)),
        HourlyTips(NOON + timedelta(hours=3), 2013000118, Decimal(83)),
        HourlyTips(NOON + timedelta(hours=4), 2013000119, Decimal(81)),
        HourlyTips(NOON + timedelta(hours=5), 2013000195, Decimal(73)),
        HourlyTips(NOON + timedelta(hours=6), 2013000072, Decimal(123)),
    ]


def test_the_published_example_of_hourly_tips() -> None:
    given = [
        fare(1, 0, "1.00"),
        fare(1, 15, "5.00"),
        fare(1, 90, "10.00"),
        fare(2, 90, "20.00"),
        fare(3, 70, "0.00"),
        fare(4, 70, "0.00"),
        fare(4, 80, "1.00"),
        fare(5, 100, "10.00"),
    ]

    assert hourly_winners(given) == [
        HourlyTips(NOON + timedelta(hours=1), 1, Decimal("6.00")),
        HourlyTips(NOON + timedelta(hours=2), 2, Decimal("20.00")),
    ]
    assert HourlyTips(NOON + timedelta(hours=2), 3, Decimal(0)) in hourly_tips(given)


def test_of_equal_drivers_the_lowest_id_wins() -> None:
    winners = hourly_winners([fare(9, 1, "5.00"), fare(2, 3, "5.00"), fare(4, 2, "5.00")])

    assert [row.driver_id for row in winners] == [2]


def test_a_fare_on_the_hour_belongs_to_the_hour_that_begins() -> None:
    (row,) = hourly_tips([fare(1, 60, "1.00")])

    assert row.hour_end == NOON + timedelta(hours=2)


def test_an_hour_is_closed_when_the_watermark_reaches_its_end() -> None:
    rows = hourly_tips([fare(1, 0, "1.00"), fare(1, 60, "1.00")])
    one_o_clock = NOON + timedelta(hours=1)

    assert hours_closed(rows, one_o_clock) == rows[:1]
    assert hours_closed(rows, one_o_clock - timedelta(milliseconds=1)) == []
