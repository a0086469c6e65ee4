"""The demo is of yesterday, and stays of that day when it is run again."""

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from simulator.demo_day import DemoDay

NOW = datetime(2026, 3, 2, 0, 30, tzinfo=UTC)


def test_the_first_demo_is_of_yesterday_at_noon(tmp_path: Path) -> None:
    of_day = DemoDay.of([tmp_path, tmp_path / "none"], "training", NOW)

    assert of_day == DemoDay(date(2026, 3, 1), "training-20260301")
    assert of_day.noon == datetime(2026, 3, 1, 12, tzinfo=UTC)
    behind = NOW.astimezone(timezone(timedelta(hours=-5)))
    assert DemoDay.of([tmp_path], "training", behind) == of_day, "by UTC"


@pytest.mark.parametrize(
    ("landed", "day", "stem"),
    [
        ("training-20260205-0003.json", date(2026, 2, 5), "training-20260205"),
        ("training-0000.json", date(2020, 1, 1), "training"),
        ("part-00000001-20260102T000000.000Z.json", date(2026, 3, 1), "training-20260301"),
    ],
)
def test_files_that_landed_before_tell_their_day(
    tmp_path: Path, landed: str, day: date, stem: str
) -> None:
    rides, fares = tmp_path / "rides", tmp_path / "fares"
    rides.mkdir()
    fares.mkdir()
    (fares / landed).touch()

    assert DemoDay.of([rides, fares], "training", NOW) == DemoDay(day, stem)
