"""How a trip was paid: TLC's codes, and the words that older files write instead of them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from assets.taxi.trips.codes import code_or_word
from rivermark import readers

CARD: Final = 1
"""The only payment whose tips are recorded."""

NAMES: Final = {
    0: "flex fare",
    1: "credit card",
    2: "cash",
    3: "no charge",
    4: "dispute",
    5: "unknown",
    6: "voided trip",
}
"""TLC's data dictionary; 0 came in 2025, in records that also lack passengers and rate code."""

WORDS: Final = {
    "credit card": 1,
    "credit": 1,
    "crd": 1,
    "cre": 1,
    "cash": 2,
    "csh": 2,
    "cas": 2,
    "no charge": 3,
    "noc": 3,
    "no": 3,
    "dispute": 4,
    "dis": 4,
    "unknown": 5,
    "unk": 5,
}
"""Spellings of the files of 2009 to 2014."""


PAYMENT_CODE: Final[readers.Reader] = code_or_word(WORDS)
"""Reads a payment written as a code ('1', '1.0') or as a word ('CRD', 'Cash')."""


def payment_name(code: Column) -> Column:
    """The name of a payment code; 'not recorded' for none, 'code 9' for one that is not TLC's."""
    name = F.when(code.isNull(), F.lit("not recorded"))
    for known, meaning in NAMES.items():
        name = name.when(code == known, F.lit(meaning))
    return name.otherwise(F.concat(F.lit("code "), code.cast("string")))
