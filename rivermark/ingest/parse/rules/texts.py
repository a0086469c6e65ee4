"""Functions of texts whose outcome is the same in Arrow and in Spark."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import Lines
from rivermark.ingest.parse.lane.times import times
from rivermark.ingest.parse.lane.values import Values
from rivermark.ingest.parse.rules.logic import BOOLEAN, bools
from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, either

TEXT: Final = Type("text")
INTEGER: Final = Type("integer", 32)
MATCHES: Final = {
    "Contains": pc.match_substring,
    "StartsWith": pc.starts_with,
    "EndsWith": pc.ends_with,
    "RLike": pc.match_substring_regex,
}
_PORTABLE: Final = re.compile(
    r"""\^?(?![*+?{])(?:
        [A-Za-z0-9 _/:,;=<>@!~"'-]         # itself
        | \\\.                             # a point
        | \[ [A-Za-z0-9 _/:,;.+-]+ \]      # one of some letters
        | \) | (?: \( (?:\?:)? | \| ) (?![*+?{])    # groups and alternatives
        | (?: [*+?] | \{[0-9]+(?:,[0-9]*)?\} ) \?? (?![*+?{])
    )*(?:\\z)?""",
    re.VERBOSE,
)
"""Patterns that Java and RE2 take alike: nothing in them depends on flags, line ends or Unicode."""


def _text(value: Vector) -> Any:
    if value.type != TEXT:
        raise Untranslatable(f"{value.type} as text")
    return value.values


def length(value: Vector) -> Vector:
    """Characters of each text."""
    counts = pc.utf8_length(_text(value)).fill_null(0).to_numpy().astype(np.int64)
    return Vector(INTEGER, counts, value.valid, value.doubtful)


def trimmed(value: Vector) -> Vector:
    """Texts without spaces around them; other white space stays."""
    return Vector(TEXT, pc.utf8_trim(_text(value), " "), value.valid, value.doubtful)


def in_case(name: str, value: Vector) -> Vector:
    """Lower or Upper, of ASCII; what else there is, is in doubt."""
    change = pc.ascii_lower if name == "Lower" else pc.ascii_upper
    result = Vector(TEXT, change(_text(value)), value.valid, value.doubtful)
    return result.with_doubt(~bools(pc.fill_null(pc.string_is_ascii(value.values), True)))


def matches(name: str, value: Vector, pattern: Vector) -> Vector:
    """Whether a text contains, begins with, ends with or matches a constant."""
    if pattern.type != TEXT or len(pattern.values) != 1 or pattern.valid is not None:
        raise Untranslatable(f"{name} of a pattern that is no constant")
    wanted = pattern.values[0].as_py()
    if name == "RLike" and not is_portable(wanted):
        raise Untranslatable(f"RLike of {wanted}")
    outcome = bools(MATCHES[name](_text(value), wanted))
    return Vector(BOOLEAN, outcome, value.valid, value.doubtful)


def is_portable(pattern: str) -> bool:
    """Whether Java and RE2 find a pattern in the same texts."""
    if not _PORTABLE.fullmatch(pattern):
        return False
    try:
        pc.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def as_timestamp(value: Vector) -> Vector:
    """Texts as times of a session in UTC; what is not plainly ISO-8601 is in doubt."""
    texts = pc.fill_null(_text(value), "")
    lines = Lines(texts)
    read = times(Values(lines, lines.starts, lines.ends, lines.starts == lines.ends))
    doubt = ~read.plain if value.valid is None else ~read.plain & value.valid
    micros = np.where(read.plain, read.micros, 0)
    return Vector(Type("timestamp"), micros, value.valid, either(value.doubtful, doubt))
