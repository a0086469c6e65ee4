"""The city's box and its grid cells."""

import pytest
from pyspark.sql import Row, SparkSession

from assets.taxi.grid import cell, in_city

INSIDE_CELLS = [
    (-74.05, 41.0, 0),
    (-73.9857, 40.7484, 50295),
    (-73.7001, 40.5001, 99999),
    # The borders of the box lie in its outermost cells.
    (-73.7, 40.5, 99999),
    (-73.7, 41.0, 249),
    (-74.05, 40.5, 99750),
]
OUTSIDE = [
    (0.0, 0.0),
    (-73.98, 0.0),
    (0.0, 40.75),
    (-73.98, 404.97812),
    (-74.0500001, 40.75),
    (-73.6999999, 40.75),
    (-73.98, 41.0000001),
    (-73.98, 40.4999999),
    # Single precision has no -74.05: its nearest lies just west of the border.
    (-74.05000305175781, 40.75),
]


@pytest.fixture(scope="module")
def places(spark: SparkSession) -> dict[tuple[float, float], Row]:
    points = [(lon, lat) for lon, lat, _ in INSIDE_CELLS] + OUTSIDE
    frame = spark.createDataFrame(points, "lon double, lat double")
    rows = frame.withColumns(
        {"inside": in_city("lon", "lat"), "cell": cell("lon", "lat")}
    ).collect()
    return {(row.lon, row.lat): row for row in rows}


def test_places_in_the_box_and_on_its_border_have_the_trainings_cell(
    places: dict[tuple[float, float], Row],
) -> None:
    found = [(lon, lat, places[lon, lat].cell) for lon, lat, _ in INSIDE_CELLS]

    assert found == INSIDE_CELLS
    assert all(places[lon, lat].inside for lon, lat, _ in INSIDE_CELLS)


def test_zero_half_zero_and_impossible_places_are_outside(
    places: dict[tuple[float, float], Row],
) -> None:
    assert [point for point in OUTSIDE if places[point].inside] == []
