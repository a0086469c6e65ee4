"""The name that was probably meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A text such as `; did you mean 'taxi/rides'?` for the nearest known name, or an empty one."""
    near = nearest(name, known)
    return f"; did you mean '{near}'?" if near is not None else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`, whatever the letter case; None where none is."""
    # Imported for an error only.
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None
