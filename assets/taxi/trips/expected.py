"""Expectations that several tables of trips share.

Real records break rules all the time, so limits on them warn. Cuts of the files lack whole columns:
the shares of empty values are bounded for whole months, and only for what each layout has.
"""

from __future__ import annotations

from typing import Final

from rivermark import expect

ORDERED_HOUR: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ORDERED_DAY: Final = expect.pair_ordered("day_start", "day_end", strictly=True)
KNOWN_SERVICE: Final = expect.in_set("service", ("yellow", "green"), severity="warning")
FLAGGED_ARE_TRIPS: Final = expect.no_rows_where("flagged > trips", name="flagged trips are trips")
