"""The values of one CSV line, as RFC 4180 writes them."""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')


def values_of(line: str, delimiter: str) -> list[str | None]:
    """The line's values in order; None for one that is empty and not quoted.

    A value that begins with a quote ends with one, and a quote within it is written twice; spaces
    and tabs between its last quote and the delimiter are no part of it. Elsewhere quotes are text,
    but for an odd one at the end of a value: there ends one that began some lines before.

    Raises:
        ValueError: a quote never closes or never opened, or text follows the one that closes.
    """
    if '"' not in line:
        return [value or None for value in line.split(delimiter)]
    values: list[str | None] = []
    is_odd = line.count('"') % 2 == 1
    at = 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        if quoted is None and line.startswith('"', at):
            raise ValueError("a quote never closes")
        behind = quoted.end() if quoted else at
        end = line.find(delimiter, behind)
        end = len(line) if end < 0 else end
        if quoted is None:
            if is_odd and line[at:end].rstrip(" \t").endswith('"'):
                raise ValueError("a quote closes that never opened")
            values.append(line[at:end] or None)
        elif line[behind:end].strip(" \t"):
            raise ValueError("text behind a closing quote")
        else:
            values.append(quoted[1].replace('""', '"'))
        at = end + len(delimiter)
    return values
