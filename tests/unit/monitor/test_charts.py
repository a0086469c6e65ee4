"""Charts are SVG files of what there is: a chart a stream, bars by hour, gaps, words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

from rivermark.monitor.charts import HourCount, draw_lateness, draw_rows_per_hour

MIDNIGHT = datetime(2013, 1, 1, tzinfo=UTC)
ONE_HOUR = timedelta(hours=1)
SVG = "{http://www.w3.org/2000/svg}"


def bars_of(picture: Path) -> list[str]:
    root = ET.parse(picture).getroot()  # noqa: S314 - of ours
    return [str(p.get("d")) for p in root.iter(f"{SVG}path") if "fill" in str(p.get("class"))]


def texts_of(picture: Path) -> list[str]:
    return [str(t.text) for t in ET.parse(picture).getroot().iter(f"{SVG}text")]  # noqa: S314


def height_of(picture: Path) -> int:
    return int(str(ET.parse(picture).getroot().get("height")))  # noqa: S314


def test_rows_per_hour_has_a_chart_for_each_stream(tmp_path: Path) -> None:
    rides = [HourCount("taxi/rides", MIDNIGHT + ONE_HOUR * n, 900) for n in range(5)]
    readings = [HourCount("readings/raw", MIDNIGHT + ONE_HOUR * n, 12) for n in range(5)]

    one = draw_rows_per_hour(rides, tmp_path / "pages" / "one.svg")
    two = draw_rows_per_hour([*rides, *readings], tmp_path / "pages" / "two.svg")

    assert len(bars_of(one)) == 5
    assert len(bars_of(two)) == 10
    assert height_of(two) > height_of(one)
    assert {"taxi/rides", "readings/raw"} <= set(texts_of(two))
    assert "4,500 rows, 1 Jan 2013, a bar is 1 h" in texts_of(two)
    assert sorted(p.name for p in one.parent.iterdir()) == ["one.svg", "two.svg"]


def test_an_hour_without_rows_is_a_gap(tmp_path: Path) -> None:
    hours = [HourCount("taxi/rides", MIDNIGHT + ONE_HOUR * n, 900) for n in range(10)]

    halved = draw_rows_per_hour([*hours[:3], *hours[8:]], tmp_path / "halved.svg")

    starts = [float(re.findall(r"M([\d.]+)", bar)[0]) for bar in bars_of(halved)]
    assert starts == [0, 100, 200, 800, 900]


def test_a_bar_of_years_is_of_many_hours(tmp_path: Path) -> None:
    years = [HourCount("taxi/rides", MIDNIGHT + 12 * ONE_HOUR * n, 1) for n in range(2_000)]

    picture = draw_rows_per_hour(years, tmp_path / "years.svg")

    assert len(bars_of(picture)) < 250
    assert "2,000 rows, 1 Jan 2013 to 27 Sep 2015, a bar is 7 d" in texts_of(picture)


def test_only_the_largest_streams_are_drawn_where_there_are_too_many(tmp_path: Path) -> None:
    many = [HourCount(f"web/s{n}", MIDNIGHT, n) for n in range(1, 40)]

    picture = draw_rows_per_hour(many, tmp_path / "many.svg")

    assert "Rows by event time (UTC) (the 12 largest of 39 streams)" in texts_of(picture)
    assert len(bars_of(picture)) == 12


def test_a_chart_of_nothing_says_so_instead_of_failing(tmp_path: Path) -> None:
    for picture in (
        draw_rows_per_hour([], tmp_path / "a.svg"),
        draw_lateness([], tmp_path / "b.svg"),
    ):
        assert "Nothing to show yet." in texts_of(picture)
