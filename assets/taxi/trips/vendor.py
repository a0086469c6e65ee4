"""Who sent a record: TLC's number, or the letters that files of 2009 to 2014 write instead."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column

from assets.taxi.trips.codes import code_of

LETTERS: Final = {"cmt": 1, "vts": 2, "dds": 3}
"""Creative Mobile Technologies and VeriFone have these numbers at TLC; Digital Dispatch Systems,
which left before there were numbers, has 3 here."""


def vendor_code(text: Column) -> Column:
    """Read a vendor written as a number ('1', '1.0') or as letters ('CMT')."""
    return code_of(text, LETTERS)
