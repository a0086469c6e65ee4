import json
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.landing.json_lines import json_line, utc_text

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def test_a_decimal_keeps_its_digits() -> None:
    row = {"tip": Decimal("12.50"), "fare": Decimal("9007199254740993.01")}

    assert json_line(row) == '{"tip":12.50,"fare":9007199254740993.01}'


@given(st.decimals(allow_nan=False, allow_infinity=False, places=2))
def test_every_amount_comes_back_exactly(amount: Decimal) -> None:
    back = json.loads(json_line({"amount": amount}), parse_float=Decimal, parse_int=Decimal)

    assert back["amount"].as_tuple() == amount.as_tuple()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back_exactly(number: float) -> None:
    assert json.loads(json_line({"number": number}))["number"] == number


def test_instants_are_utc_with_milliseconds_or_with_microseconds_where_needed() -> None:
    assert utc_text(NOON) == "2020-01-01T12:00:00.000Z"
    assert utc_text(NOON + timedelta(milliseconds=7)) == "2020-01-01T12:00:00.007Z"
    assert utc_text(NOON + timedelta(microseconds=7)) == "2020-01-01T12:00:00.000007Z"


def test_an_instant_of_another_zone_is_written_in_utc() -> None:
    in_new_york = NOON.astimezone(timezone(timedelta(hours=-5)))

    assert json_line({"at": in_new_york}) == '{"at":"2020-01-01T12:00:00.000Z"}'


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no zone"):
        json_line({"at": NOON.replace(tzinfo=None)})


@pytest.mark.parametrize("number", [float("nan"), float("-inf"), Decimal("NaN"), Decimal("Inf")])
def test_a_number_that_json_cannot_say_is_refused(number: float | Decimal) -> None:
    with pytest.raises(ValueError, match="amount"):
        json_line({"amount": number})


def test_a_line_is_one_line() -> None:
    line = json_line({"note": 'two\nlines and "quotes"', "none": None, "yes": True})

    assert "\n" not in line
    assert json.loads(line) == {"note": 'two\nlines and "quotes"', "none": None, "yes": True}
