"""Waiting ends with the condition, the deadline, or the end of what should bring it about."""

from __future__ import annotations

import pytest

from rivermark.testing import wait_until


def test_the_value_of_the_condition_is_returned() -> None:
    values = iter([None, 0, "rows"])

    assert wait_until(lambda: next(values), 5, interval=0.001) == "rows"


def test_a_condition_that_never_holds_is_named() -> None:
    with pytest.raises(AssertionError, match=r"not within 0.01 s: the table is there"):
        wait_until(lambda: False, 0.01, reason="the table is there", interval=0.001)


def test_waiting_ends_with_what_should_bring_the_condition_about() -> None:
    with pytest.raises(AssertionError, match="ended before: the table is there"):
        wait_until(lambda: False, 60, reason="the table is there", alive=lambda: False)
