"""Who sent a record: TLC's number, or the letters that files of 2009 to 2014 write instead."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from rivermark import readers

LETTERS: Final = {"cmt": 1, "vts": 2, "dds": 3}
"""Creative Mobile Technologies and VeriFone have these numbers at TLC; Digital Dispatch Systems,
which left before there were numbers, has 3 here."""


def vendor_code(text: Column) -> Column:
    """Read a vendor written as a number ('1', '1.0') or as letters ('CMT')."""
    code = readers.integer(IntegerType())(text)
    word = F.lower(F.trim(text))
    for letters, number in LETTERS.items():
        code = F.when(word == letters, F.lit(number)).otherwise(code)
    return code
