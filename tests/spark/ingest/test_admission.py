"""The door against an oracle in plain Python, whatever the grouping of files and batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from rivermark import Ingest
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.oracle import Expected, through_the_door
from tests.spark.helpers.random_files import files_at_random
from tests.spark.helpers.sensors import FOLDER, readings, rows, run

pytestmark = pytest.mark.spark

MALFORMED = ("unparsable_json", "wrong_number_of_values")


@dataclass(frozen=True)
class Grouping:
    """How the same files are cut: into arrivals, into batches, into runs; and where rows lie."""

    max_files: int
    per_trigger: int
    runs: int = 1
    spread: bool = False


@pytest.mark.parametrize(
    ("seed", "cut"),
    [
        pytest.param(
            1,
            Grouping(max_files=1, per_trigger=1),
            id="each file a batch",
            marks=pytest.mark.long,
        ),
        pytest.param(
            2,
            Grouping(max_files=3, per_trigger=2, runs=2),
            id="three files an arrival, two arrivals a batch, two runs",
        ),
        pytest.param(
            1, Grouping(max_files=5, per_trigger=3, spread=True), id="spread over executors"
        ),
    ],
)
def test_every_row_lands_in_exactly_one_place_however_the_files_are_grouped(
    seed: int,
    cut: Grouping,
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rivermark.runtime.query.ingest.PLANNED_PER_TRIGGER", cut.per_trigger)
    if cut.spread:
        monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    ingest = readings(max_files=cut.max_files)
    files = files_at_random(seed, 16)
    size = -(-len(files) // cut.runs)
    taken = 0
    for first in range(0, len(files), size):
        for file in files[first : first + size]:
            file.land(landing)
        summary = run(spark, settings, ingest)[ingest.name]
        assert summary.rows_in == summary.admitted + summary.late + summary.quarantined
        taken += summary.rows_in

    expected = through_the_door(Path(settings.landing_root) / FOLDER)
    assert expected.late
    assert expected.quarantine
    assert taken == expected.records
    assert_lands_as_expected(spark, settings, ingest, expected)


def assert_lands_as_expected(
    spark: SparkSession, settings: Settings, ingest: Ingest, expected: Expected
) -> None:
    """Compare the ingest's tables with the oracle, row for row."""
    admitted = rows(
        spark, settings, ingest.admitted,
        "_file", "_row", "sensor", "at", "temperature", "note", "flags",
    )  # fmt: skip
    assert plain(admitted) == expected.admitted
    late = rows(spark, settings, ingest.late, "_file", "_row", "_watermark", "_late_by_ms")
    assert plain(late) == expected.late
    quarantine = rows(spark, settings, ingest.quarantine, "_file", "_row", "reasons")
    assert plain(quarantine) == expected.quarantine
    assert len(rows(spark, settings, ingest.raw)) == expected.records


def plain(found: Sequence[Row]) -> list[tuple[object, ...]]:
    """Rows as the oracle writes them: times with their zone, lists as tuples."""
    return sorted((tuple(value(v) for v in row) for row in found), key=repr)


def value(found: object) -> object:
    """One value as the oracle writes it."""
    if isinstance(found, list):
        reasons = ("malformed" if r in MALFORMED else r.split(":")[0] for r in found)
        return tuple(reasons)
    if isinstance(found, datetime):
        return found.replace(tzinfo=UTC)
    return found
