"""Operators in event time that are the same on a stream and on a table."""

from rivermark.operators.as_of import join_as_of, validity
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
    "join_as_of",
    "keep",
    "per_window",
    "validity",
]
