"""Time spans in words."""

from __future__ import annotations

from datetime import timedelta


def span(milliseconds: float) -> str:
    """A time span in words, of two units at most."""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.3g} s"
    whole = timedelta(seconds=round(seconds))
    minutes = whole.seconds // 60
    if whole.days:
        return f"{whole.days} d {minutes // 60} h".removesuffix(" 0 h")
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min".removesuffix(" 0 min")
    return f"{seconds / 60:.3g} min"
