"""Charts are of what they are given: heights, gaps, marks, and words."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from rivermark.html.chart import ranking
from rivermark.html.page import pages_of
from rivermark.html.time_chart import COLOURS, OTHERS, Marked, lines, stacked_bars

START = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(*values: float) -> dict[datetime, float]:
    return {START + n * HOUR: value for n, value in enumerate(values)}


def test_bars_of_a_span_stand_on_each_other() -> None:
    chart = stacked_bars("Rows", {"a": hours(10, 30), "b": hours(10)}, HOUR)

    first, on_top, second = [s for s in chart.shapes if s.kind.startswith("fill")]
    heights = [float(re.findall(r"v-([\d.]+)", s.path)[0]) for s in (first, on_top, second)]
    assert heights[0] == heights[1] == pytest.approx(heights[2] / 3, rel=0.01)
    assert first.path.split(" ")[1].startswith("200v"), "on the ground"
    assert on_top.path.split(" ")[1].startswith(f"{200 - heights[0]:.4g}v")
    assert first.title == "2026-03-02 00:00 UTC: 20, a: 10"
    assert chart.legend == {"fill s0": "a", "fill s1": "b"}
    assert chart.label == (
        "Rows. 2026-03-02 00:00 to 2026-03-02 01:00 UTC, at most 30 at 2026-03-02 01:00, "
        "at the end 30."
    )


def test_the_smallest_of_many_are_summed_up() -> None:
    many = {f"s{n}": hours(n) for n in range(1, 10)}

    chart = stacked_bars("Rows", many, HOUR)

    assert list(chart.legend.values()) == ["s5", "s6", "s7", "s8", "s9", OTHERS]
    assert len(chart.legend) == COLOURS
    assert chart.shapes[-1].title.endswith("45, others: 10")


def test_a_line_is_broken_where_points_are_missing() -> None:
    series = hours(1, 2, 3, 4)
    del series[START + 2 * HOUR]
    series |= {at + 6 * HOUR: value for at, value in hours(1, 2, 3).items()}

    broken = lines("T", {"a": series}, unit="number", broken=True)
    joined = lines("T", {"a": series}, unit="number")

    assert broken.shapes[-1].path.count("M") == 3
    assert joined.shapes[-1].path.count("M") == 1


def test_marks_are_spans_or_instants_within_the_chart() -> None:
    marked = [
        Marked(START + HOUR, START + 2 * HOUR),
        Marked(START + 3 * HOUR, START + 3 * HOUR),
        Marked(START - HOUR, START - HOUR),
    ]

    chart = lines(
        "T", {"a": hours(0, 1, 2, 3, 4)}, unit="number", marks={"gap": marked, "none": []}
    )

    [mark] = [s for s in chart.shapes if s.kind == "mark m0"]
    assert mark.path == "M254.9 0h245.1v200H254.9zM745.1 0h2v200H745.1z"
    assert chart.legend == {"mark m0": "gap"}


def test_a_single_value_is_a_chart_too() -> None:
    assert lines("T", {"a": hours(5)}, unit="number").shapes
    assert stacked_bars("T", {"a": hours(5)}, HOUR).shapes
    assert lines("T", {"a": hours(0, 0)}, unit="share").y_ticks[0].text == "0 %"


def test_losses_hang_below_the_ground() -> None:
    chart = stacked_bars("Money", {"a": hours(10, -10), "b": hours(0, 5)}, HOUR)

    assert [tick.text for tick in chart.y_ticks] == ["-10", "-5", "0", "5", "10"]
    paths = [s.path for s in chart.shapes if s.kind.startswith("fill")]
    assert [path.split(" ")[1].split("h")[0] for path in paths] == [
        "100v-100",
        "200v-100",
        "200v-50",
    ]
    assert [r.share for r in ranking("M", {"a": -5.0, "b": 2.5}, unit="number").ranks] == [0.5, 0]


def test_names_are_ranked_and_stay_text() -> None:
    ranked = ranking("Zones", {"<b>": 2.0, "z": 8.0, "a": 8.0}, unit="number")

    assert [(r.name, r.value, r.share) for r in ranked.ranks] == [
        *(("a", "8", 1.0), ("z", "8", 1.0), ("<b>", "2", 0.25))
    ]
    page = pages_of("rivermark.monitor.dashboard").from_string(
        '{% from "chart.html" import ranking %}{{ ranking(r) }}'
    )
    assert "&lt;b&gt;" in page.render(r=ranked)
