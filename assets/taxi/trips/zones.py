"""Taxi zones: the 265 numbers of TLC's lookup table, bundled with the code.

Source: TLC, `taxi_zone_lookup.csv` of its trip record page, public data of the City of New York.
Every cell is text, 'NA' and 'N/A' too. Names are not unique (Corona is 56 and 57): join by number.
"""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

FIRST: Final = 1
LAST: Final = 265
UNKNOWN: Final = (264, 265)
"""What vendors send when they have no zone (264) or one outside the city (265)."""


@dataclass(frozen=True)
class Zone:
    """One line of the lookup table."""

    borough: str
    zone: str
    service_zone: str


@cache
def zones() -> dict[int, Zone]:
    """The lookup table by zone number."""
    text = files(__package__).joinpath("taxi_zone_lookup.csv").read_text(encoding="utf-8")
    return {
        int(row["LocationID"]): Zone(row["Borough"], row["Zone"], row["service_zone"])
        for row in csv.DictReader(text.splitlines())
    }


def zone(number: Column) -> Column:
    """The lookup table's entry for a zone number, as a struct; null for a number it does not have.

    An array literal and no join: looking up can neither lose a trip nor double one.
    """
    known = zones()
    entries = [asdict(known[n]) if n in known else None for n in range(LAST + 1)]
    kind = "array<struct<borough: string, zone: string, service_zone: string>>"
    return F.get(F.from_json(F.lit(json.dumps(entries)), kind), number)


def is_unknown(number: str) -> str:
    """Whether a zone number names no place: 264, 265, or outside 1 to 265; as SQL of rules."""
    return f"{number} IN {UNKNOWN} OR {number} NOT BETWEEN {FIRST} AND {LAST}"
