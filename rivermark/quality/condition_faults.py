"""DuckDB's words for a condition that it cannot evaluate: one line, with the place."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from rivermark.quality.condition_engine import connection

if TYPE_CHECKING:
    import duckdb

BEFORE: Final = "SELECT (\n"
"""What stands before a condition where DuckDB parses it."""


def reason_of(error: duckdb.Error, text: str = "") -> str:
    """The message of DuckDB in one line, with the place in the condition where it knows one."""
    _, _, rest = str(error).partition(": ")
    try:
        said = json.loads(rest)
    except json.JSONDecodeError:
        return str(error).splitlines()[0]
    message: str = said["exception_message"].splitlines()[0]
    message = message.split(" You might need to add explicit type casts")[0].rstrip(".!")
    if said.get("type") == "Scalar Function":
        message = f"there is no function '{said['name']}'"
    return message + place_in(text, said.get("position"))


def place_in(text: str, position: object) -> str:
    """The place in the text, in characters from 1; empty where DuckDB names none."""
    place = -1 if position is None else int(str(position)) - len(BEFORE)
    if not 0 <= place < len(text.encode()):
        return " (at its end)" if place > 0 else ""
    return f" (at character {len(text.encode()[:place].decode(errors='ignore')) + 1})"


def quotes_needed(text: str, names: Sequence[str]) -> str:
    """The spelling of a column whose name is a word of SQL."""
    words = set(re.findall(r'(?<!["\w])\w+(?!["\w])', text.lower()))
    meant = [name for name in names if name.lower() in words & _keywords()]
    return f'; {meant[0]} is a word of SQL: as a column it is written "{meant[0]}"' if meant else ""


@cache
def _keywords() -> frozenset[str]:
    sql = "SELECT keyword_name FROM duckdb_keywords()"
    return frozenset(name for (name,) in connection().execute(sql).fetchall())
