"""The box around New York in which both ends of a trip must lie, borders included.

Source: the ride cleansing of the Flink training. Degrees, east and north positive.
"""

from __future__ import annotations

from typing import Final

WEST: Final = -74.05
EAST: Final = -73.70
SOUTH: Final = 40.5
NORTH: Final = 41.0
