from datetime import UTC, date, datetime

import pytest

from rivermark.backfill.as_of import (
    InvalidVersion,
    check_tables,
    parse_as_of,
    parse_day,
    parse_version,
)
from rivermark.model.errors import RivermarkError
from tests.unit.backfill.conftest import TIPS

SEVEN = {"shop/orders": 7, "shop/hourly": datetime(2026, 3, 1, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("12", 12),
        ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01 12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_number_is_a_version_and_a_date_a_moment_in_utc(
    text: str, version: int | datetime
) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["newest", "-1", "1.5", "", "²", "0001-01-01T00:00+14:00"])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidVersion, match="a version such as 12"):
        parse_version(text)


def test_inputs_are_pinned_together_or_by_table_as_pairs_or_as_json() -> None:
    assert parse_as_of() is parse_as_of("") is None
    assert parse_as_of("7") == 7
    assert parse_as_of("shop/orders=7", "shop/hourly=2026-03-01") == SEVEN
    assert parse_as_of('{"shop/orders": 7, "shop/hourly": "2026-03-01"}') == SEVEN


@pytest.mark.parametrize(
    "texts",
    [
        ("7", "shop/hourly=3"), ("3", "4"), ("{shop",), ('{"orders": 7}',), ("Orders=7",),
        ("taxi/rides=1", "taxi/rides=2"), ('{"taxi/rides": 1, "taxi/rides": 2}',), ('{"a": [1]}',),
        ("-1",), ("1; DROP TABLE x",), ('{"../rides": 1}',), ('{"taxi/rides": "x"}',), ("{",),
    ],
)  # fmt: skip
def test_pins_that_are_unclear_are_refused(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidVersion):
        parse_as_of(*texts)


def test_a_day_is_an_iso_date() -> None:
    assert parse_day("2026-03-01") == date(2026, 3, 1)
    with pytest.raises(RivermarkError, match="'yesterday' is not a day"):
        parse_day("yesterday")


@pytest.mark.parametrize("text", ["0001-01-01", "1899-12-31", "3000-01-01", "9999-12-31"])
def test_n074_a_day_whose_margin_would_be_none_is_refused_with_the_bounds(text: str) -> None:
    with pytest.raises(RivermarkError, match=f"day {text} .*: expected 1900-01-01 to 2999-12-31"):
        parse_day(text)


def test_a_version_of_a_table_that_is_not_read_is_refused() -> None:
    check_tables(7, [TIPS])
    check_tables({"test/tips": 7}, [TIPS])
    with pytest.raises(RivermarkError, match="'test/tip' is not read; what is read: test/tips"):
        check_tables({"test/tips": 7, "test/tip": 7}, [TIPS])
