"""The values of a JSON object as texts, each as it is written in its line.

Read by Python's `json`, with these decisions. Numbers stay the text they are: none becomes a
double. Of a key that occurs twice the last value counts. `NaN`, `Infinity` and `-Infinity` are
values, as Python writes them; no reader of numbers takes them. What follows an object, single
quotes, control characters within texts and more than `MOST_LEVELS` levels make a line unparsable.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

MOST_LEVELS: Final = 500
"""Levels that a line may be nested. A bound of our own: where Python raises depends on its version
and on how deep the caller stands, and a verdict must not."""

_DECODER: Final = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str)
_BRACKETS: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]')
_SPACE: Final = re.compile(r"[ \t\n\r]*")


def values_of(line: str) -> dict[str, Any]:
    """The object's values by their keys: texts and numbers as `str`, and what Python has else.

    Raises:
        ValueError: the line is not one JSON object, or is nested too deep.
    """
    try:
        value = _DECODER.decode(line)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    if line.count("[") + line.count("{") > MOST_LEVELS and _levels(line) > MOST_LEVELS:
        raise ValueError("nested too deep")
    return value


def written_values_of(line: str) -> dict[str, str]:
    """Each value of an object as it is written, of a line that `values_of` has read."""
    written = {}
    at = _behind(line, _behind(line, 0) + 1)
    while line[at] == '"':
        key, at = _DECODER.raw_decode(line, at)
        start = _behind(line, _behind(line, at) + 1)
        _, end = _DECODER.raw_decode(line, start)
        written[key] = line[start:end]
        # Behind the comma stands the next key; behind the brace nothing, so its place will do.
        at = _behind(line, end)
        if line[at] == ",":
            at = _behind(line, at + 1)
    return written


def _behind(line: str, at: int) -> int:
    """The first place from `at` on that is no space."""
    space = _SPACE.match(line, at)
    return space.end() if space else at


def _levels(line: str) -> int:
    """Levels of nesting of a well-formed line."""
    depth = deepest = 0
    for mark in _BRACKETS.findall(line):
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    return deepest
