"""Which taxi service a record belongs to: yellow (hailed anywhere) or green (outside the core)."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

WORD: Final = r"^.*(?<![a-z])(yellow|green)(?![a-z])"
"""The last such word of a path: the file's name before its folders."""
ALONE: Final = "(?:^|[^a-z])(?:yellow|green)(?:[^a-z]|$)"


def service_of(color: Column, file: Column) -> Column:
    """The record's own colour where it has one, else the last such word of its file's path."""
    own = F.lower(F.trim(color))
    named = F.regexp_extract(F.lower(file), WORD, 1)
    return F.when(own.isin("yellow", "green"), own).when(named != "", named)


def is_unknown(color: str, file: str) -> str:
    """Whether neither says which service it is, as SQL of rules."""
    return (
        f"NOT coalesce(lower(trim({color}, ' ')) IN ('yellow', 'green'), false) "
        f"AND NOT coalesce(regexp_matches(lower({file}), '{ALONE}'), false)"
    )
