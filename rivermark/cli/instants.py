"""Days, versions and moments as a person types them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from rivermark.model.errors import RivermarkError


def day(text: str) -> date:
    """A day such as 2020-01-01."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise RivermarkError(f"{text!r} is not a day: expected like 2020-01-01") from None


def version_or_moment(text: str) -> int | datetime:
    """A version of a table (12), or a moment (2026-03-01T12:00, UTC where it names no zone)."""
    if text.isdigit():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise RevisionUnclear(text) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def as_of(texts: Sequence[str]) -> int | datetime | dict[str, int | datetime] | None:
    """One version or moment for all inputs, or `TABLE=VERSION` for each; None for the newest."""
    if not texts:
        return None
    named = [text.partition("=") for text in texts]
    if all(equals for _, equals, _ in named):
        return {table: version_or_moment(value) for table, _, value in named}
    if len(texts) > 1:
        raise RevisionUnclear(" ".join(texts))
    return version_or_moment(texts[0])


class RevisionUnclear(RivermarkError):
    """A text that is neither a version nor a moment."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r}: expected a version such as 12, a moment in UTC such as 2026-03-01T12:00, "
            "or TABLE=VERSION for each table"
        )
