"""Waiting for the days of a stream to close."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from rivermark.backfill.recompute import OnStep, silent
from rivermark.lake.lake import Lake
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.stream import Stream
from rivermark.runtime.query.recompute import check_closed

LOOK_EVERY: Final = timedelta(seconds=5)
"""A look reads the newest entry of the stream's checkpoint, a file of a few lines."""


def wait_until_closed(
    lake: Lake,
    stream: Stream,
    last: date,
    *,
    at_most: timedelta,
    on_step: OnStep = silent,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return as soon as the stream has finished the day; PartitionStillOpen after `at_most`.

    Somebody must run the stream meanwhile, and events of later days must come.
    """
    if stream.kind != "append":
        return None
    waited = timedelta(0)
    told = ""
    while True:
        try:
            return check_closed(lake, stream, last)
        except PartitionStillOpen as error:
            if waited >= at_most:
                raise
            if told != str(error):
                told = str(error)
                on_step(f"waiting: {told}")
            sleep(LOOK_EVERY.total_seconds())
            waited += LOOK_EVERY
