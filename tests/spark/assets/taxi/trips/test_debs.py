"""Trips of 2013 with coordinates (case B086)."""

from __future__ import annotations

import csv

import pytest

from tests.spark.assets.taxi.trips.conftest import DEBS
from tests.spark.assets.taxi.trips.published import Published

pytestmark = pytest.mark.long


def test_b086_rides_with_an_end_outside_the_box_are_set_aside(others: Published) -> None:
    with DEBS.open(newline="") as file:
        lines = list(csv.reader(file))
    inside = {
        number
        for number, cells in enumerate(lines, start=1)
        if all(-74.05 <= float(cells[n]) <= -73.70 for n in (6, 8))
        and all(40.5 <= float(cells[n]) <= 41.0 for n in (7, 9))
    }
    aside = others.rows("taxi/debs_trips_quarantine")

    assert {r["_row"] for r in others.rows("taxi/debs_trips")} == inside
    assert {r["_row"] for r in aside} == set(range(1, len(lines) + 1)) - inside
    assert {tuple(r["reasons"]) for r in aside} == {("outside_new_york",)}
    assert 0 < len(aside) < len(lines)


def test_a_headerless_line_is_read_in_the_declared_order(others: Published) -> None:
    with DEBS.open(newline="") as file:
        first = next(csv.reader(file))
    (row,) = others.rows("taxi/debs_trips", _row=1)

    assert row["medallion"] == first[0]
    assert row["pickup_at"].isoformat() == "2013-01-01T05:00:00+00:00"
    assert str(row["total"]) == first[16]
    assert row["payment"] == first[10]
