"""New York as a box, and as a grid of cells about 100 m wide.

Box, cell size and numbering are those of the training's `GeoUtils` (apache/flink-training).
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

WEST: Final = -74.05
EAST: Final = -73.7
SOUTH: Final = 40.5
NORTH: Final = 41.0

CELL_WIDTH: Final = 0.0014
"""Degrees of longitude: 118 m at the latitude of New York."""
CELL_HEIGHT: Final = 0.00125
"""Degrees of latitude: 139 m."""
COLUMNS: Final = 250
ROWS: Final = 400
LAST_CELL: Final = COLUMNS * ROWS - 1


def in_city(lon: str, lat: str) -> Column:
    """Whether the place (columns in degrees) lies in the box, its borders included."""
    return F.col(lon).between(WEST, EAST) & F.col(lat).between(SOUTH, NORTH)


def cell(lon: str, lat: str) -> Column:
    """The cell of a place in the box: numbered row by row from the north-west corner, from 0.

    The borders of the box belong to its outermost cells; the source would count its southern border
    as a row of its own. Meaningless for a place outside the box.
    """
    return (_column(F.col(lon)) + COLUMNS * _row(F.col(lat))).cast("int")


def cells(west: Column, east: Column, south: Column, north: Column) -> Column:
    """The cells of all places between two longitudes and two latitudes in the box, as an array."""
    columns = F.sequence(_column(west), _column(east))
    rows = F.sequence(_row(north), _row(south))

    def of_row(row: Column) -> Column:
        return F.transform(columns, lambda column: (column + COLUMNS * row).cast("int"))

    return F.flatten(F.transform(rows, of_row))


def _column(lon: Column) -> Column:
    column = F.floor((F.lit(abs(WEST)) - F.abs(lon)) / F.lit(CELL_WIDTH))
    return F.least(F.greatest(column, F.lit(0)), F.lit(COLUMNS - 1))


def _row(lat: Column) -> Column:
    row = F.floor((F.lit(NORTH) - lat) / F.lit(CELL_HEIGHT))
    return F.least(F.greatest(row, F.lit(0)), F.lit(ROWS - 1))
