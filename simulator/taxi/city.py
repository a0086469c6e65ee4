"""New York as the training sees it: a box, and a grid of cells about 100 m wide.

Constants and rules are those of `GeoUtils` in apache/flink-training.
"""

import math
from typing import Final

WEST: Final = -74.05
EAST: Final = -73.7
SOUTH: Final = 40.5
NORTH: Final = 41.0
CELL_WIDTH: Final = 0.0014
CELL_HEIGHT: Final = 0.00125
COLUMNS: Final = 250
ROWS: Final = 400


def in_new_york(lon: float, lat: float) -> bool:
    """Whether a place in degrees lies in the box, its borders included."""
    return WEST <= lon <= EAST and SOUTH <= lat <= NORTH


def grid_cell(lon: float, lat: float) -> int:
    """The cell of a place, numbered row by row from the north-west corner of the box, from 0.

    The box's eastern and southern border belong to the last column and row; the source counts them
    as cells of their own. Places outside the box get the number that the formula gives.
    """
    column = math.floor((abs(WEST) - abs(lon)) / CELL_WIDTH) if lon != EAST else COLUMNS - 1
    row = math.floor((NORTH - lat) / CELL_HEIGHT) if lat != SOUTH else ROWS - 1
    return column + row * COLUMNS
