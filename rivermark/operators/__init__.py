"""Operators in event time that are the same on a stream and on a table."""

from rivermark.operators.filters import keep
from rivermark.operators.repeats import ARRIVAL, first_of_each
from rivermark.operators.windows import (
    EventWindow,
    Sessions,
    SessionWindow,
    Sliding,
    SlidingWindow,
    Tumbling,
    TumblingWindow,
    per_window,
)

__all__ = [
    "ARRIVAL",
    "EventWindow",
    "SessionWindow",
    "Sessions",
    "Sliding",
    "SlidingWindow",
    "Tumbling",
    "TumblingWindow",
    "first_of_each",
    "keep",
    "per_window",
]
