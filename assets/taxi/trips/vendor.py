"""Who sent a record: TLC's number, or the letters that files of 2009 to 2014 write instead."""

from __future__ import annotations

from typing import Final

from assets.taxi.trips.codes import code_or_word
from rivermark import readers

LETTERS: Final = {"cmt": 1, "vts": 2, "dds": 3}
"""Creative Mobile Technologies and VeriFone have these numbers at TLC; Digital Dispatch Systems,
which left before there were numbers, has 3 here."""

VENDOR_CODE: Final[readers.Reader] = code_or_word(LETTERS)
"""Reads a vendor written as a number ('1', '1.0') or as letters ('CMT')."""
