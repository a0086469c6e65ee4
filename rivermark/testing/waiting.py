"""Waits for a condition of something that runs beside the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

TIMEOUT_SECONDS: Final = 240.0
"""How long a condition may take by default: a busy machine is no failed test."""


def wait_until(
    condition: Callable[[], T],
    timeout: float = TIMEOUT_SECONDS,
    *,
    reason: str = "",
    alive: Callable[[], bool] = lambda: True,
    interval: float = 0.1,
) -> T:
    """Wait until `condition()` is true; returns its value.

        >>> wait_until(lambda: "rows", 60, reason="the first batch is committed")
        'rows'

    Args:
        condition: Asked at once, and then each `interval` seconds.
        timeout: Seconds.
        reason: What is waited for, for the message.
        alive: Whether what should bring the condition about still runs; asked with the condition.
        interval: Seconds between two questions.

    Raises:
        AssertionError: The condition did not become true in time, or `alive` became false first.
    """
    what = reason or getattr(condition, "__name__", repr(condition))
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if not alive():
            raise AssertionError(f"ended before: {what}")
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(interval)
    return value
