"""Times out of texts: ISO-8601 with and without a zone, other patterns, milliseconds.

A text is a wall time only if it carries no zone at all. One that carries a zone is read as the
instant it names, or not at all: `Z` or `z`, an offset (`+05:30`, `-4:00`, `+0530`, `-4`, also
behind `UTC` or `GMT`), `UTC`, `GMT`, `EST`, `MST`, `HST` and names such as `America/New_York`,
with a space before it or without. Other abbreviations are not read: `BST` and `CST` are three
zones each, and `CET` in July is an hour away from what the clocks there show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import LongType, TimestampType

from rivermark.model.names import check_zone
from rivermark.model.number_readers import IntegerReader
from rivermark.model.reader import Micros, ValueReader
from rivermark.model.time_formats import TimeFormat, time_format
from rivermark.model.zones import OFFSET, Offset, instant_of, micros_of, zone_of

WALL: Final = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
)
ZONE: Final = (
    rf" ?([Zz]|(?:UTC|UT|GMT)?{OFFSET}|UTC|UT|GMT|EST|MST|HST|[A-Z][A-Za-z]+/[A-Za-z0-9_+/-]+)"
)
FIRST_MILLIS, LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in milliseconds since 1970."""
FEWEST_MILLIS: Final = 10_000_000_000
_ISO: Final = re.compile(f"{WALL}(?:{ZONE})?")
_WHOLE: Final = IntegerReader(LongType())


def iso_time(plain: str, zone: Offset | None) -> Micros | None:
    """The instant of an ISO-8601 text; one without a zone is in `zone`.

    Digits below a microsecond are cut off.
    """
    match = _ISO.fullmatch(plain)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, named = match.groups()
    wall = micros_of(
        int(year), int(month), int(day), int(hour), int(minute), int(second or 0), fraction or ""
    )
    of_text = zone if named is None else zone_of(named)
    return None if wall is None or of_text is None else instant_of(wall, of_text)


@dataclass(frozen=True)
class InstantReader(ValueReader):
    """ISO-8601 times, in UTC where they have no zone."""

    def value(self, text: str) -> Micros | None:
        """The instant that a text names."""
        return iso_time(text.strip(" "), 0)


@dataclass(frozen=True)
class WallReader(ValueReader):
    """Wall-clock times of a zone."""

    zone: str
    formats: tuple[TimeFormat, ...] = ()

    def value(self, text: str) -> Micros | None:
        """The instant at which the clock shows what a text says."""
        zone = zone_of(self.zone)
        plain = text.strip(" ")
        instant = iso_time(plain, zone)
        if not self.formats:
            return instant
        if instant is not None and names_instant(plain):
            return instant
        for each in self.formats:
            if (read := each.read(plain)) is not None:
                wall, own = read
                named = zone if own is None else own
                return None if named is None else instant_of(wall, named)
        return None


@dataclass(frozen=True)
class MillisReader(ValueReader):
    """Milliseconds since 1970."""

    def value(self, text: str) -> Micros | None:
        """The instant of a number of milliseconds."""
        millis = _WHOLE.value(text)
        if millis is None or not FIRST_MILLIS <= millis <= LAST_MILLIS:
            return None
        return None if -FEWEST_MILLIS < millis < FEWEST_MILLIS else millis * 1000


def names_instant(text: str) -> bool:
    """Returns True if an ISO-8601 time carries a zone, and so names an instant by itself."""
    match = _ISO.fullmatch(text.strip(" "))
    return match is not None and match[8] is not None


def utc_timestamp() -> InstantReader:
    """ISO-8601 instants; a text without a zone is taken as UTC. Digits below a microsecond go."""
    return InstantReader(TimestampType())


def local_timestamp(zone: str, *formats: str) -> WallReader:
    """Wall-clock times of `zone`, as UTC instants.

    `formats` are datetime patterns such as `dd.MM.yyyy HH:mm`
    (rivermark.model.time_formats), tried in turn; without any, ISO-8601 local times. A wall
    time that a clock change makes ambiguous is taken as the earlier instant (summer time); one that
    the change skips is moved forward by the length of the gap (java.time.ZonedDateTime.ofLocal). A
    text that carries a zone is read as the instant it names, whether in ISO-8601 or by a format.

    Raises:
        DeclarationError: a zone that is none, a format of other letters, or one whose zone is
            optional, so that its times are of two kinds.
    """
    if zone_of(zone) is None:
        check_zone("local_timestamp", zone)
    return WallReader(TimestampType(), zone, tuple(map(time_format, formats)))


def epoch_millis() -> MillisReader:
    """Milliseconds since 1970-01-01T00:00Z, of the years 1 to 9999; others are not read.

    Nor are those within 115 days of 1970, of up to ten digits: they are seconds, of any year from
    1653 to 2286.
    """
    return MillisReader(TimestampType())
