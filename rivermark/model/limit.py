"""Limits of a range: numbers, days or instants. Text is read as an instant, or refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

from rivermark.model.errors import DeclarationError

Limit = int | float | Decimal | date | datetime


def as_limit(value: Limit | str | None) -> Limit | None:
    """The limit that is meant: ISO text becomes an instant, and a time without a zone is UTC.

    Text that is no time is refused, because a range of text compares letter by letter: '10' lies
    before '9' (case B081).
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise DeclarationError(
                f"limit {value!r} is a text but not an ISO time like '2019-03-01 00:00:00'; "
                "give a number, a date or a time"
            ) from None
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    if isinstance(value, date):
        return value
    if isinstance(value, bool) or not (isinstance(value, int) or math.isfinite(value)):
        raise DeclarationError(f"limit {value!r} is neither a finite number nor a time")
    return value


def refuse_disorder(low: Limit | None, high: Limit | None) -> None:
    """Refuse a range without limits, of two kinds, or that ends before it begins."""
    if low is None and high is None:
        raise DeclarationError("a range needs at least one limit")
    if low is None or high is None:
        return
    try:
        ordered = low <= high  # type: ignore[operator]
    except TypeError:
        raise DeclarationError(
            f"limits {low!r} and {high!r} are of different types; give two numbers or two times"
        ) from None
    if not ordered:
        raise DeclarationError(
            f"the range from {in_words(low)} to {in_words(high)} is empty; swap or widen the limits"
        )


def in_words(limit: Limit) -> str:
    """The form of a limit in a rule's name; instants in UTC."""
    if isinstance(limit, datetime):
        return limit.isoformat(" ").replace("+00:00", " UTC")
    return str(limit)
