"""Charts are real pictures of the promised size, and they show what is there."""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from rivermark.monitor.charts import (
    BLUE,
    DOTS_PER_INCH,
    WIDTH_INCHES,
    HourCount,
    draw_lateness,
    draw_rows_per_hour,
)

MIDNIGHT = datetime(2013, 1, 1, tzinfo=UTC)
ONE_HOUR = timedelta(hours=1)


def size_of(png: Path) -> tuple[int, int]:
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def pixels(png: Path, colour: str) -> int:
    red, green, blue = (round(255 * c) for c in to_rgb(colour))
    picture = (255 * imread(png)[:, :, :3]).round()
    return int((picture == [red, green, blue]).all(axis=2).sum())


def test_rows_per_hour_has_a_panel_for_each_stream(tmp_path: Path) -> None:
    rides = [HourCount("taxi/rides", MIDNIGHT + ONE_HOUR * n, 900) for n in range(5)]
    readings = [HourCount("readings/raw", MIDNIGHT + ONE_HOUR * n, 12) for n in range(5)]

    one = draw_rows_per_hour(rides, tmp_path / "one.png")
    two = draw_rows_per_hour([*rides, *readings], tmp_path / "two.png")

    assert size_of(one)[0] == WIDTH_INCHES * DOTS_PER_INCH
    assert size_of(two)[1] - size_of(one)[1] == pytest.approx(1.2 * DOTS_PER_INCH, abs=1)


def test_an_hour_without_rows_is_a_gap(tmp_path: Path) -> None:
    hours = [HourCount("taxi/rides", MIDNIGHT + ONE_HOUR * n, 900) for n in range(10)]

    whole = draw_rows_per_hour(hours, tmp_path / "whole.png")
    halved = draw_rows_per_hour([*hours[:3], *hours[8:]], tmp_path / "halved.png")

    assert pixels(halved, BLUE) == pytest.approx(pixels(whole, BLUE) / 2, rel=0.05)


def test_only_the_largest_streams_are_drawn_where_there_are_too_many(tmp_path: Path) -> None:
    many = [HourCount(f"web/s{n}", MIDNIGHT, n) for n in range(1, 40)]

    picture = draw_rows_per_hour(many, tmp_path / "many.png")

    assert size_of(picture)[1] < 16 * DOTS_PER_INCH


def test_a_chart_of_nothing_says_so_instead_of_failing(tmp_path: Path) -> None:
    empty = [
        draw_rows_per_hour([], tmp_path / "a.png"),
        draw_lateness([], tmp_path / "b.png"),
    ]

    assert all(size_of(picture)[0] == WIDTH_INCHES * DOTS_PER_INCH for picture in empty)
    assert pixels(empty[0], "#000000") > 100
