"""Expectations that several tables of readings share."""

from __future__ import annotations

from datetime import date
from typing import Final

from rivermark import Daily, Expectation, expect
from rivermark.quality import usual_rows

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)
ORDERED_EXTREMES: Final = expect.pair_ordered("minimum", "maximum")


def usual_in_the_archive(column: str) -> Expectation:
    """A day's usual number of rows, for information only: in the archive sensors come and go.

    One that reads every five minutes joins some that read every hour, and ends before them: by the
    profile, eight weeks of days around each such change are unusual.
    """
    return usual_rows(Daily(column=column, start=date(2013, 1, 1)), severity="info")
