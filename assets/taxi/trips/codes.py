"""TLC's codes, which files of 2009 to 2014 write as words."""

from __future__ import annotations

from collections.abc import Mapping

from rivermark import readers


def code_or_word(words: Mapping[str, int]) -> readers.Reader:
    """Reads a code ('1', '1.0') or one of the words for it, which are given in lower case."""
    codes = " ".join(f"WHEN '{word}' THEN '{code}'" for word, code in words.items())
    return readers.sql(f"CASE lower(trim(text, ' ')) {codes} ELSE text END", readers.integer())
