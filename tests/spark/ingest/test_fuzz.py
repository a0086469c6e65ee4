"""Mutated files through admission, beside an oracle of Python's own readers.

Each round has a seed, which its name and its failure say: RIVERMARK_FUZZ_SEED is the first one, 1
by default, and RIVERMARK_FUZZ_ROUNDS how many there are.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark import Field, Ingest
from rivermark.settings import Settings
from tests.oracles.mutated_files import MAX_ROW_BYTES, Fate, Place, fates_of
from tests.oracles.mutations import land_mutated
from tests.spark.helpers.sensors import FOLDER, READING, readings, rows, run

pytestmark = [pytest.mark.spark, pytest.mark.long]

SEED = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
ROUNDS = int(os.environ.get("RIVERMARK_FUZZ_ROUNDS", "1"))
FILES = 90
VALUES = ("sensor", "at", "temperature", "count", "ratio", "note", "flags")


def fuzzed() -> Ingest:
    """The readings with a whole number and a double more; many files make a batch."""
    *most, note = READING.fields
    fields = (*most, Field("count", "long"), Field("ratio", "double"), note)
    return readings(fields=fields, pattern="*", max_files=FILES // 3, max_row_bytes=MAX_ROW_BYTES)


@pytest.mark.parametrize("spread", [False, True], ids=["in the driver", "on executors"])
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_mutated_files_become_what_pythons_readers_say(
    seed: int,
    spread: bool,
    spark: SparkSession,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if spread:
        monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
        # Most files are cut, between lines that are mutated too.
        monkeypatch.setattr("rivermark.ingest.admission.PIECE_BYTES", 500)
    folder = Path(settings.landing_root) / FOLDER
    land_mutated(folder, seed, FILES)
    ingest = fuzzed()
    run(spark, settings, ingest)

    expected = fates_of(folder)
    found = fates(spark, settings, ingest)
    payloads = {(r["_file"], r["_row"]): r["payload"] for r in rows(spark, settings, ingest.raw)}
    wrong = [
        f"{place}: {payloads.get(place)!r}\n  found {found.get(place)}\n  right {fate}"
        for place in {**expected, **found}
        if (fate := expected.get(place)) != found.get(place)
    ]
    assert not wrong, f"seed {seed}: {len(wrong)} of {len(expected)}\n" + "\n".join(wrong[:40])
    assert {fate.where for fate in found.values()} == {"admitted", "late", "quarantined"}


def fates(spark: SparkSession, settings: Settings, ingest: Ingest) -> dict[Place, Fate]:
    """What became of each row, by the tables; a row in two of them is a failure."""
    found: dict[Place, Fate] = {}
    for where, table in (("admitted", ingest.admitted), ("late", ingest.late)):
        for row in rows(spark, settings, table, "_file", "_row", *VALUES):
            assert (row["_file"], row["_row"]) not in found
            found[row["_file"], row["_row"]] = Fate(where, tuple(plain(row[v]) for v in VALUES))
    for row in rows(spark, settings, ingest.quarantine, "_file", "_row", "reasons"):
        assert (row["_file"], row["_row"]) not in found
        reasons = tuple(reason.split(":")[0] for reason in row["reasons"])
        found[row["_file"], row["_row"]] = Fate("quarantined", reasons)
    return found


def plain(value: Any) -> Any:
    """A value as the oracle writes it."""
    if isinstance(value, list):
        return tuple(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
