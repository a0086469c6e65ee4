"""The bundled zone table."""

from __future__ import annotations

import csv
from pathlib import Path

from assets.taxi.trips.zones import FIRST, LAST, UNKNOWN, Zone, zones

SAMPLE = Path(__file__).parents[4] / "data" / "tlc" / "taxi_zone_lookup.csv"


def test_it_is_the_table_that_tlc_publishes() -> None:
    with SAMPLE.open(newline="") as file:
        _, *lines = list(csv.reader(file))

    assert {int(n): Zone(*cells) for n, *cells in lines} == zones()
    assert list(zones()) == list(range(FIRST, LAST + 1))


def test_the_words_na_and_not_available_are_text() -> None:
    assert [zones()[n] for n in UNKNOWN] == [
        Zone("Unknown", "NV", "N/A"),
        Zone("Unknown", "NA", "N/A"),
    ]
