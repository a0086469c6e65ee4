"""Operators in event time that are the same on a stream and on a table."""

from rivermark.operators.filters import keep
from rivermark.operators.repeats import ARRIVAL, first_of_each
from rivermark.operators.windows import EventWindow, Sessions, Sliding, Tumbling, per_window

__all__ = [
    "ARRIVAL",
    "EventWindow",
    "Sessions",
    "Sliding",
    "Tumbling",
    "first_of_each",
    "keep",
    "per_window",
]
