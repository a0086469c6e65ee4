"""New York's wall clock as instants.

TLC writes wall-clock times without zone or offset. A time that occurs twice, when clocks go back,
is taken as the first of the two; one that clocks skip is taken with the offset from before the gap,
so it moves forward by the gap's length. This is the rule of java.time.ZonedDateTime.ofLocal, and
fold=0 of PEP 495.
"""

from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from rivermark.model.time import EPOCH, MICROSECOND

NEW_YORK: Final = ZoneInfo("America/New_York")
HOUR: Final = timedelta(hours=1) // MICROSECOND


def instants_of(wall: NDArray[np.int64]) -> NDArray[np.int64]:
    """Wall-clock times as instants, both in microseconds since 1970, the latter in UTC."""
    # One look-up an hour, not one a trip: since 1884 offsets change on whole hours of the wall.
    hours, of_hour = np.unique(wall // HOUR, return_inverse=True)
    offsets = np.array([_offset(hour) for hour in hours.tolist()], dtype=np.int64)
    return wall - offsets[of_hour] if len(wall) else wall


def instant(microseconds: int) -> datetime:
    """The instant that lies this many microseconds after 1970, in UTC."""
    return EPOCH + microseconds * MICROSECOND


def _offset(hour: int) -> int:
    offset = (EPOCH + hour * timedelta(hours=1)).replace(tzinfo=NEW_YORK, fold=0).utcoffset()
    return (offset or timedelta(0)) // MICROSECOND
