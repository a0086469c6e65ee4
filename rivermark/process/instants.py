"""Instants of the process engine: whole milliseconds since the epoch, UTC, as Spark counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

from rivermark.model.column_type import ColumnType
from rivermark.model.errors import DeclarationError
from rivermark.model.time import MILLISECOND, millis_of, moment_of_millis

Millis = Annotated[int, ColumnType("timestamp")]
"""An instant: milliseconds since the epoch, UTC; a field of this type is stored as a timestamp.

A plain number in Python, because a clock is read for every event.
"""

BEGINNING: Final[Millis] = -(2**63)
"""The watermark before the first one: nothing is late yet."""

END_OF_TIME: Final[Millis] = 2**63 - 1
"""The watermark after the last event: every event-time timer is due."""

NEVER: Final[Millis] = 2**63
"""Later than every instant: no timer is set."""


def instant(at: datetime | Millis) -> Millis:
    """Milliseconds since the epoch of an aware datetime (microseconds are cut); integers pass.

    Raises TypeError for anything else and for a datetime without a zone, whose instant is a guess.
    """
    if isinstance(at, int) and not isinstance(at, bool):
        return at
    if not isinstance(at, datetime):
        raise TypeError(f"expected an aware datetime or milliseconds, not {at!r}")
    if at.tzinfo is None:
        raise TypeError(f"{at!r} has no time zone: an instant needs one, such as UTC")
    return millis_of(at)


def moment(at: Millis) -> datetime:
    """Datetime (UTC) of an instant."""
    return moment_of_millis(at)


def span(of: timedelta, what: str) -> Millis:
    """Milliseconds of a duration that must be positive; `what` names it in the error."""
    if not isinstance(of, timedelta):
        raise DeclarationError(f"{what} must be a timedelta, not {of!r}")
    millis = of // MILLISECOND
    if millis <= 0 or of % MILLISECOND:
        raise DeclarationError(f"{what} must be a whole number of milliseconds above 0, not {of}")
    return millis


def span_or_zero(of: timedelta, what: str) -> Millis:
    """Milliseconds of a duration that may be zero; `what` names it in the error."""
    return 0 if of == timedelta(0) else span(of, what)
