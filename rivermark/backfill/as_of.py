"""Days, versions and moments as text: typed at a console or in a run's configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from rivermark.model.errors import WrongUse
from rivermark.model.names import NAME
from rivermark.model.table import Table

if TYPE_CHECKING:
    from rivermark.runtime.query.recompute import AsOf

FIRST_DAY: Final = date(1900, 1, 1)
LAST_DAY: Final = date(2999, 12, 31)
"""Days are read with a margin around them, which must be days too."""


def parse_day(text: str) -> date:
    """A day such as 2020-01-01. Raises WrongUse."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise WrongUse(f"{text!r} is not a day: expected like 2020-01-01") from None
    check_range(day, day)
    return day


def check_range(first: date | None, last: date | None) -> None:
    """Refuse a range of days that ends before it begins, and days without a margin.

    Raises WrongUse.
    """
    for day in (first, last):
        if day is not None and not FIRST_DAY <= day <= LAST_DAY:
            raise WrongUse(f"day {day} is out of range: expected {FIRST_DAY} to {LAST_DAY}")
    if first is not None and last is not None and last < first:
        raise WrongUse(f"the range ends ({last}) before it begins ({first})")


def parse_version(text: str) -> int | datetime:
    """A version of a table (12), or a moment (2026-03-01T12:00, UTC where it names no zone)."""
    try:
        if text.isdecimal():
            return int(text)
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidVersion(text) from None


def check_tables(as_of: AsOf, inputs: Iterable[Table]) -> None:
    """Refuse a version of a table that is not read. Raises WrongUse."""
    if not isinstance(as_of, Mapping):
        return
    read = [table.name for table in inputs]
    for name in as_of:
        if name not in read:
            raise WrongUse(f"as of: '{name}' is not read; what is read: {', '.join(read)}")


def parse_as_of(*texts: str) -> AsOf:
    """One version or moment for all inputs, or one for each table; None, the newest, without text.

    Versions by table are `TABLE=VERSION` texts or one JSON object. Raises InvalidVersion.
    """
    named = [text.strip().partition("=") for text in texts if text.strip()]
    if not named:
        return None
    if len(named) == 1 and named[0][0].startswith("{"):
        text = "".join(named[0])
        try:
            pairs = json.loads(text, object_pairs_hook=list)
            named = [(table, "=", str(value)) for table, value in pairs]
        except ValueError:
            raise InvalidVersion(text) from None
    elif not named[0][1]:
        if len(named) > 1:
            raise InvalidVersion(" ".join(texts))
        return parse_version(named[0][0])
    for table, equals, _ in named:
        if not (equals and NAME.fullmatch(table)):
            raise InvalidVersion(" ".join(texts))
    versions = {table: parse_version(value) for table, _, value in named}
    if len(versions) < len(named):
        raise InvalidVersion(" ".join(texts))
    return versions


class InvalidVersion(WrongUse):
    """A text that is neither a version nor a moment."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r}: expected a version such as 12, a moment in UTC such as 2026-03-01T12:00, "
            "TABLE=VERSION for each table, or these as JSON"
        )
