"""The door replayed over raw: the same rules change nothing, others change what they must."""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermark import Ingest, Rule, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay.decisions import changes_table
from rivermark.backfill.ingest_replay.run import IngestReplay, replay_ingest
from rivermark.model.errors import RivermarkError
from rivermark.settings import Settings
from tests.spark.helpers import oracle
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.random_files import files_at_random
from tests.spark.helpers.sensors import FOLDER, MINUTE, READING, READINGS, readings, run

pytestmark = pytest.mark.spark

DAY = date(2024, 3, 1)


def decided(folder: Path, lateness: timedelta, patch: pytest.MonkeyPatch) -> dict[object, str]:
    """Where the oracle puts each row of the landed files: by file and line, as text."""
    patch.setattr(oracle, "LATENESS", lateness)
    found = oracle.through_the_door(folder)
    places: dict[object, str] = {row[:2]: "admitted" for row in found.admitted}
    places |= {row[:2]: "late" for row in found.late}
    return places | {row[:2]: "quarantined" for row in found.quarantine if row[1] is not None}


def turned(report: IngestReplay) -> Counter[tuple[str, str]]:
    return Counter({(t.before.split(":")[0], t.after.split(":")[0]): t.rows for t in report.turns})


@pytest.mark.long
def test_decisions_that_change_are_those_of_the_oracle_and_nothing_published_is_touched(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Raw rows are decided in several parts, each of which goes on with the clock of the one before.
    monkeypatch.setattr("rivermark.backfill.ingest_replay.replay.PART_BYTES", 2_000)
    monkeypatch.setattr("rivermark.backfill.ingest_replay.replay.TASKS_BYTES", 2_000)
    for file in files_at_random(3, 16):
        file.land(landing)
    ingest = readings(max_files=3)
    run(spark, settings, ingest)
    lake, folder = settings.lake(), Path(settings.landing_root) / FOLDER
    versions = {t.name: DeltaTable(lake.path(t)).version() for t in READINGS.tables}

    def again(changed: Ingest, lateness: timedelta | None = None, day: date = DAY) -> IngestReplay:
        context = BackfillContext(
            settings=settings, topology=Topology([changed]), spark=lambda: spark, run_id="again"
        )
        seconds = lateness.total_seconds() if lateness else None
        return replay_ingest(context, changed.name, day, day, lateness_seconds=seconds)

    same = again(ingest)
    assert (same.turns, same.rows_changed) == ((), 0)
    assert same.replayed.rows > 50

    before = decided(folder, MINUTE, monkeypatch)
    after = decided(folder, 5 * MINUTE, monkeypatch)
    longer = again(ingest, 5 * MINUTE)
    expected = Counter((before[k], after[k]) for k in before if before[k] != after[k])
    assert expected["late", "admitted"]
    assert turned(longer) == expected
    assert len(longer.sample) == longer.rows_changed
    listed = DeltaTable(lake.path(changes_table(ingest))).to_pyarrow_table().to_pylist()
    assert {(r["_file"], r["_row"]) for r in listed} == {k for k in before if before[k] != after[k]}

    stricter = readings(
        max_files=3,
        rules=(*READING.rules, Rule("warm", "temperature > 50", "quarantine", "Above 50.")),
    )
    told = {t.after for t in again(stricter).turns}
    assert "quarantined: warm" in told
    assert {t.name: DeltaTable(lake.path(t)).version() for t in READINGS.tables} == versions

    with pytest.raises(RivermarkError, match="has no row of 2030-01-01"):
        again(ingest, day=date(2030, 1, 1))
    assert isinstance(datetime.fromisoformat(longer.sample[0]["event_time"]), datetime)
