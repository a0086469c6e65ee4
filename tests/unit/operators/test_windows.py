"""Windows as values."""

from datetime import timedelta

import pytest

from rivermark.model.errors import DeclarationError
from rivermark.operators.windows import SessionWindow, SlidingWindow, TumblingWindow, interval

MINUTE = timedelta(minutes=1)
NOTHING = timedelta(0)


def test_windows_of_no_length_are_refused() -> None:
    for make in (TumblingWindow, SessionWindow):
        with pytest.raises(DeclarationError, match="above zero"):
            make(NOTHING)
    with pytest.raises(DeclarationError, match="every"):
        SlidingWindow(MINUTE, every=NOTHING)


def test_sliding_windows_that_leave_events_out_are_refused() -> None:
    with pytest.raises(DeclarationError, match="leave events out"):
        SlidingWindow(MINUTE, every=2 * MINUTE)


def test_an_interval_is_exact_to_the_microsecond() -> None:
    assert interval(timedelta(days=1, microseconds=1)) == "86400000001 microseconds"
