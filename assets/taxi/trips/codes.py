"""TLC's codes, which files of 2009 to 2014 write as words."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from rivermark import readers


def code_of(text: Column, words: Mapping[str, int]) -> Column:
    """Read a code ('1', '1.0') or one of the words for it, which are given in lower case."""
    code = readers.integer(IntegerType())(text)
    word = F.lower(F.trim(text))
    for spelling, meant in words.items():
        code = F.when(word == spelling, F.lit(meant)).otherwise(code)
    return code
