"""Times out of texts: ISO-8601 with and without a zone, other patterns, milliseconds.

A text is a wall time only if it carries no zone at all. One that carries a zone is read as the
instant it names, or not at all: `Z` or `z`, an offset (`+05:30`, `-4:00`, `+0530`, `-4`, also
behind `UTC` or `GMT`), `UTC`, `GMT`, `EST`, `MST`, `HST` and names such as `America/New_York`,
with a space before it or without. Other abbreviations are not read: `BST` and `CST` are three
zones each, and `CET` in July is an hour away from what the clocks there show.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_zone
from rivermark.model.number_readers import integer
from rivermark.model.reader import NamedReader, Reader

_WALL: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_OFFSET: Final = r"[+-][0-9]{1,2}(?::?[0-9]{2}){0,2}"
_ZONE: Final = (
    rf" ?(?:[Zz]|(?:UTC|UT|GMT)?{_OFFSET}|UTC|UT|GMT|EST|MST|HST|[A-Z][A-Za-z]+/[A-Za-z0-9_+/-]+)"
)
_SPARK_ZONE: Final = re.compile(
    rf"Z|UT|(?:UTC|UT|GMT)?{_OFFSET}"
    "|ACT|AET|AGT|ART|AST|BET|BST|CAT|CNT|CST|CTT|EAT|ECT|IET|IST|JST|MIT|NET|NST|PLT|PNT|PRT|PST"
    "|SST|VST"
)
"""Zones that Spark knows and the time zone database does not: java.time.ZoneId.SHORT_IDS, too."""
_WALL_TIME: Final = _WALL + r"\z"
_INSTANT: Final = _WALL + _ZONE + r"\z"
_ZONE_LETTERS: Final = re.compile(r"[VzOXxZ]")
_LITERALS: Final = re.compile(r"'([^']*)'")
FIRST_MILLIS, LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999 in milliseconds since 1970; far beyond them the conversion itself raises."""
FEWEST_MILLIS: Final = 10_000_000_000


def utc_timestamp() -> Reader:
    """ISO-8601 instants; a text without a zone is taken as UTC. Digits below a microsecond go."""

    def read(text: Column) -> Column:
        plain = F.trim(text)
        known = plain.rlike(_WALL_TIME) | names_instant(text)
        return F.when(known, _cast(plain))

    return NamedReader("instant", TimestampType(), read)


def local_timestamp(zone: str, *formats: str) -> Reader:
    """Wall-clock times of `zone`, as UTC instants.

    `formats` are Spark datetime patterns, tried in turn; without any, ISO-8601 local times. A wall
    time that a clock change makes ambiguous is taken as the earlier instant (summer time); one that
    the change skips is moved forward by the length of the gap (java.time.ZonedDateTime.ofLocal). A
    text that carries a zone is read as the instant it names, whether in ISO-8601 or by a format.

    Raises:
        DeclarationError: a zone that is none, or a format whose zone is optional, so that its times
            are of two kinds.
    """
    if not _SPARK_ZONE.fullmatch(zone):
        check_zone("local_timestamp", zone)
    zoned = [_is_zoned(pattern) for pattern in formats]

    def read(text: Column) -> Column:
        plain = F.trim(text)
        times = [F.when(names_instant(text), _cast(plain))]
        for pattern, is_instant in zip(formats, zoned, strict=True):
            time = F.try_to_timestamp(plain, F.lit(pattern))
            times.append(time if is_instant else F.to_utc_timestamp(time, zone))
        if not formats:
            wall = F.when(plain.rlike(_WALL_TIME), plain.try_cast(TimestampType()))
            times.append(F.to_utc_timestamp(wall, zone))
        return F.coalesce(*times)

    return read if formats else NamedReader("wall", TimestampType(), read, zone=zone)


def names_instant(text: Column) -> Column:
    """Whether the text of an ISO-8601 time carries a zone, and so names an instant by itself."""
    return F.trim(text).rlike(_INSTANT)


def _cast(plain: Column) -> Column:
    """The instant of an ISO-8601 text.

    A small z, which RFC 3339 allows, and a zone behind a minute are nothing to Spark's cast.
    """
    capital = F.regexp_replace(plain, "(?<=[0-9 ])z$", "Z")
    complete = F.regexp_replace(capital, "^(.{16})(?= ?[^ :])", "$1:00")
    is_rare = plain.endswith("z") | ~plain.substr(17, 1).isin(":", "")
    return F.when(is_rare, complete).otherwise(plain).try_cast(TimestampType())


def _is_zoned(pattern: str) -> bool:
    """Whether times of a Spark datetime pattern name their zone, by letters or as a literal."""
    letters = _LITERALS.sub("", pattern)
    if any(_ZONE_LETTERS.search(part) for part in re.findall(r"\[([^\]]*)", letters)):
        raise DeclarationError(
            f"format '{pattern}': a zone in brackets may be missing; give a format with the zone "
            "and one without"
        )
    literals = {literal.strip().upper() for literal in _LITERALS.findall(pattern)}
    return bool(_ZONE_LETTERS.search(letters) or literals & {"Z", "UTC", "GMT"})


def epoch_millis() -> Reader:
    """Milliseconds since 1970-01-01T00:00Z, of the years 1 to 9999; others are not read.

    Nor are those within 115 days of 1970, of up to ten digits: they are seconds, of any year from
    1653 to 2286.
    """

    def read(text: Column) -> Column:
        millis = integer()(text)
        in_seconds = millis.between(1 - FEWEST_MILLIS, FEWEST_MILLIS - 1)
        is_moment = millis.between(FIRST_MILLIS, LAST_MILLIS) & ~in_seconds
        return F.timestamp_millis(F.when(is_moment, millis))

    return NamedReader("millis", TimestampType(), read)
