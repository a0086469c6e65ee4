"""The JSON object of a message as Spark reads it, once what Spark reads otherwise is text."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType

from rivermark.ingest.parse.json_object import MOST_LEVELS

WRITTEN: Final = "_written"
"""The message as it is written, from its brace on."""
EXACT: Final = "_exact"
"""The same as a list, with texts in place of what Spark would read otherwise."""
OWN: Final = uuid4().hex
"""Drawn by each process, so that no message has it."""
LAST: Final = f"_last_{OWN}"
"""The one member of the list's last object."""
HALF: Final = f"_half_{OWN}"
"""A word for half a character."""
HALF_A_CHARACTER: Final = (
    # From where the last one ended: all that is none, then an escape that UTF-8 cannot hold.
    r"\G((?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])"
    r"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+)"
    r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""An escape such as \\ud800 alone: Spark reads a question mark."""
IN_QUOTES: Final = r'"(?:[^"\\]++|\\.)*+"'
NUMBER: Final = (
    # Likewise: texts and all that begins no number, then a number or a word of Python as a value.
    rf'\G((?:{IN_QUOTES}|[^"0-9\-NI]++|-(?![0-9I])|N(?!aN)|I(?!nfinity))*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+\-]?[0-9]++)?+|NaN|-?Infinity)"
    r"(?=[ \t\r\n]*+[,}\]])"
)
"""A number of a JSON object. Its cost grows with the length of what stands before it."""
WHITE: Final = " \t\r\n"
LONGEST_NAME: Final = 50_000
"""Characters of a name that Spark reads."""
LONG_NAME: Final = (
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))'
    rf'{{{LONGEST_NAME + 1},}}+"(?=[{WHITE}]*+:)'
)
"""A longer one: no field is spelled so."""
LEVELS: Final = MOST_LEVELS - 1
"""Levels of a member's list or object."""
AROUND: Final = rf'(?:[^"\[\]{{}}]++|{IN_QUOTES})*+'
INSIDE: Final = rf'[\[{{](?:[^"\[\]{{}}]++|{IN_QUOTES}|' * LEVELS + "(?!)" + r")*+[\]}]" * LEVELS
SHALLOW: Final = rf"^\{{{AROUND}(?:{INSIDE}{AROUND})*+\}}"
"""An object of no more levels than a line may have."""
ESCAPED: Final = r'^(?:[^\\]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+$'
"""A text of no escapes but JSON's."""
READING: Final = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    # The list around it is a level more.
    "maxNestingDepth": str(MOST_LEVELS + 1),
}


def exact(value: Column) -> Column:
    """The message as a list, with texts in place of what Spark would read otherwise.

    As a list, because of a message alone Spark reads what comes first, and passes over the rest.
    The list's last object is ours: Spark has come to it only if no bracket of the message closed
    the list before (R02). Numbers become texts before they are read: Spark would make them of
    their doubles. Half a character is marked.
    """
    halves = F.contains(value, F.lit("\\ud")) | F.contains(value, F.lit("\\uD"))
    marked = F.regexp_replace(value, HALF_A_CHARACTER, f"$1{HALF}")
    is_marked = F.contains(value, F.lit("\\")) & halves
    is_long = F.octet_length(value) > LONGEST_NAME
    named = (
        F.when(
            is_long,
            F.regexp_replace(F.when(halves, marked).otherwise(value), LONG_NAME, f'"{OWN}"'),
        )
        .when(is_marked, marked)
        .otherwise(value)
    )
    as_texts = F.regexp_replace(named, NUMBER, '$1"$2"')
    return F.concat(F.lit("["), as_texts, F.lit(f',{{"{LAST}":1}}]'))


def read(exact: Column, kind: DataType) -> Column:
    """The objects of such a list; null, or fewer, where it is none."""
    return F.from_json(exact, ArrayType(kind), READING)


def is_sound_within() -> Column:
    """Returns True if nothing is wrong within a value, of which Spark would only make a null."""
    written = F.col(WRITTEN)
    opened = F.octet_length(written) - F.octet_length(F.translate(written, "[{", ""))
    # So many levels have as many brackets to open them, and to close them.
    may_be_deep = F.when(F.octet_length(written) > 2 * MOST_LEVELS, opened > MOST_LEVELS)
    is_deep = F.coalesce(may_be_deep, F.lit(False)) & ~written.rlike(SHALLOW)
    is_escaped_oddly = F.contains(written, F.lit("\\")) & ~written.rlike(ESCAPED)
    return ~(is_deep | is_escaped_oddly)
