"""The chart of winners, for few hours and for many."""

from decimal import Decimal
from pathlib import Path

import pytest

from rivermark.monitor.charts import DOTS_PER_INCH, ONE_HOUR, WIDTH_INCHES
from simulator.taxi.charts import Winner, draw_hourly_winners
from tests.unit.monitor.test_charts import MIDNIGHT, size_of


@pytest.mark.parametrize("hours", [1, 6, 48, 400])
def test_winners_are_drawn_for_few_hours_and_for_many(tmp_path: Path, hours: int) -> None:
    winners = [
        Winner(MIDNIGHT + ONE_HOUR * n, 2013000000 + n, Decimal("71.25")) for n in range(hours)
    ]

    picture = draw_hourly_winners(winners, tmp_path / "pages" / "winners.png")

    assert size_of(picture) == (WIDTH_INCHES * DOTS_PER_INCH, 4.2 * DOTS_PER_INCH)
    assert [p.name for p in picture.parent.iterdir()] == ["winners.png"]


def test_a_chart_of_no_hour_says_so_instead_of_failing(tmp_path: Path) -> None:
    picture = draw_hourly_winners([], tmp_path / "none.png")

    assert size_of(picture)[0] == WIDTH_INCHES * DOTS_PER_INCH
