from datetime import UTC, date, datetime

import pytest

from rivermark.cli.instants import RevisionUnclear, as_of, day, version_or_moment
from rivermark.model.errors import RivermarkError


def test_a_number_is_a_version_and_a_date_a_moment_in_utc() -> None:
    assert version_or_moment("12") == 12
    assert version_or_moment("2026-03-01T12:00") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert version_or_moment("2026-03-01T12:00+02:00") == datetime(2026, 3, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["newest", "-1", "1.5", ""])
def test_other_texts_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(RevisionUnclear, match="a version such as 12"):
        version_or_moment(text)


def test_inputs_are_pinned_together_or_by_table() -> None:
    assert as_of([]) is None
    assert as_of(["7"]) == 7
    assert as_of(["shop/orders=7", "shop/hourly=2026-03-01"]) == {
        "shop/orders": 7,
        "shop/hourly": datetime(2026, 3, 1, tzinfo=UTC),
    }
    with pytest.raises(RevisionUnclear):
        as_of(["7", "shop/hourly=3"])


def test_a_day_is_an_iso_date() -> None:
    assert day("2026-03-01") == date(2026, 3, 1)
    with pytest.raises(RivermarkError, match="'yesterday' is not a day"):
        day("yesterday")
