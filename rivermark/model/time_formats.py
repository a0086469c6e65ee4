"""Datetime patterns of Java and Spark, such as `dd.MM.yyyy HH:mm`, for texts of times."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from rivermark.model.errors import DeclarationError
from rivermark.model.zones import Offset, micros_of, zone_of

_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_OFFSET: Final = r"[+-][0-9]{2}"
_LETTERS: Final = {
    "yyyy": ("year", "[0-9]{4}"),
    "uuuu": ("year", "[0-9]{4}"),
    "yy": ("short_year", "[0-9]{2}"),
    "MMMM": ("month_name", "|".join(_MONTHS)),
    "MMM": ("month_name", "|".join(name[:3] for name in _MONTHS)),
    **{
        letter * count: (name, "[0-9]{2}" if count == 2 else "[0-9]{1,2}")
        for letter, name in zip(
            "MdHhms", ("month", "day", "hour", "half_day_hour", "minute", "second"), strict=True
        )
        for count in (1, 2)
    },
    "a": ("half", "AM|PM"),
    "VV": ("zone", r"[A-Za-z]+(?:/[A-Za-z0-9_+/-]+)?|" + _OFFSET + ":[0-9]{2}"),
    **{
        letter * count: ("zone", ("Z|" if letter == "X" else "") + _OFFSET + rest)
        for letter in "Xx"
        for count, rest in (
            (1, "(?:[0-9]{2})?"),
            (2, "[0-9]{2}"),
            (3, ":[0-9]{2}"),
            (4, "[0-9]{2}(?:[0-9]{2})?"),
            (5, ":[0-9]{2}(?::[0-9]{2})?"),
        )
    },
    **{"Z" * count: ("zone", _OFFSET + "[0-9]{2}") for count in (1, 2, 3)},
    **{"S" * count: ("fraction", f"[0-9]{{1,{count}}}") for count in range(1, 10)},
}
_TOKEN: Final = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|\[[^\[\]]*\]|[^A-Za-z\[\]'{}#]|.", re.S)
_VARIABLE: Final = re.compile(r"(?:^|[^A-Za-z])([MdHhms])(?=[yuMdHhmsS])(?!\1)")
KNOWN: Final = "yyyy yy M MM MMM MMMM d dd H HH h hh m mm s ss S... a X x Z VV"


@dataclass(frozen=True)
class TimeFormat:
    """A pattern; `zoned` where its times name their zone."""

    pattern: str
    zoned: bool

    def read(self, text: str) -> tuple[int, Offset | None] | None:
        """The wall time of a text in microseconds, and its zone; None where it does not match."""
        match = _compiled(self.pattern).fullmatch(text)
        if match is None:
            return None
        parts = {name: part for name, part in match.groupdict().items() if part is not None}
        hour = int(parts.get("hour", 0))
        is_pm = parts.get("half", "").upper() == "PM"
        if "half_day_hour" in parts:
            hour = int(parts["half_day_hour"])
            if not 1 <= hour <= 12:
                return None
            hour = hour % 12 + 12 * is_pm
        elif "half" in parts and "hour" in parts and is_pm != (hour >= 12):
            return None
        wall = micros_of(
            _year(parts), _month(parts), int(parts.get("day", 1)), hour,
            int(parts.get("minute", 0)), int(parts.get("second", 0)), parts.get("fraction", ""),
        )  # fmt: skip
        if wall is None:
            return None
        if not self.zoned:
            return wall, None
        zone = zone_of(parts["zone"]) if "zone" in parts else 0
        return None if zone is None else (wall, zone)


def _year(parts: dict[str, str]) -> int:
    if "short_year" in parts:
        return 2000 + int(parts["short_year"])
    return int(parts.get("year", 1970))


def _month(parts: dict[str, str]) -> int:
    if "month_name" in parts:
        short = parts["month_name"][:3].title()
        return [name[:3] for name in _MONTHS].index(short) + 1
    return int(parts.get("month", 1))


def time_format(pattern: str) -> TimeFormat:
    """A pattern, checked.

    Raises:
        DeclarationError: it has letters that are not known, or a zone that may be missing.
    """
    has_zone = "zone" in _compiled(pattern).groupindex
    literals = {m[1].strip().upper() for m in _TOKEN.finditer(pattern) if m[1] is not None}
    return TimeFormat(pattern, has_zone or bool(literals & {"Z", "UTC", "GMT"}))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_expression(pattern), re.IGNORECASE | re.ASCII)
    except re.error:
        raise DeclarationError(f"format '{pattern}' has a part of a time twice") from None


def _expression(pattern: str) -> str:
    # Literals are no letters of the pattern.
    bare = re.sub(r"'[^']*'", "''", pattern)
    if variable := _VARIABLE.search(bare):
        letter = variable[1]
        raise DeclarationError(
            f"format '{pattern}': {letter} is of one or two digits and others follow; write "
            f"{letter * 2}"
        )
    return "".join(_part(pattern, match) for match in _TOKEN.finditer(pattern))


def _part(pattern: str, match: re.Match[str]) -> str:
    text = match[0]
    if match[1] is not None:
        return re.escape(match[1].replace("''", "'") or "'")
    if match[2] is not None:
        if text not in _LETTERS:
            raise DeclarationError(
                f"format '{pattern}': '{text}' is not known; there are {KNOWN}, literals in single "
                "quotes, and parts in brackets that may be missing"
            )
        name, expression = _LETTERS[text]
        return f"(?P<{name}>{expression})"
    if len(text) > 1:
        inner = _expression(text[1:-1])
        if "(?P<zone>" in inner:
            raise DeclarationError(
                f"format '{pattern}': a zone in brackets may be missing; give a format with the "
                "zone and one without"
            )
        return f"(?:{inner})?"
    if text in "[]{}#'":
        raise DeclarationError(f"format '{pattern}': {text} has a meaning of its own; quote it")
    return re.escape(text)
