"""Twenty backfills of a day beside live streams and a compaction: nothing is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.backfill.registry import newest_records
from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from tests.spark.backfill.beside_a_stream import (
    SILVER,
    backfills_beside_a_stream,
    joined_files,
)
from tests.spark.helpers.landing import Landing

pytestmark = [pytest.mark.story, pytest.mark.slow, pytest.mark.timeout(900)]

BACKFILLS = 20


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    session = open_session(Settings(home=tmp_path), kind="long")
    yield session
    session.stop()


def test_twenty_backfills_beside_live_streams_and_a_compaction(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1)
    landing = Landing(Path(settings.landing_root))

    outcome = backfills_beside_a_stream(spark, settings, landing, times=BACKFILLS)

    assert outcome.silver == outcome.expected
    assert outcome.gold.items() <= outcome.expected_gold.items()
    assert len(outcome.gold) > 1
    records = newest_records(settings.lake(), SILVER.name)
    assert len(records) == len(outcome.done) == BACKFILLS
    assert all(record.added == record.removed == record.changed == 0 for record in records)
    # The streams committed while days were computed, and files were joined in between.
    assert sum(record.commits_meanwhile for record in records) > 0
    assert joined_files(outcome.kept) > 0
    print(  # noqa: T201 - what a reader of the story's log wants to know
        f"{BACKFILLS} backfills, {sum(r.conflicts for r in records)} conflicts tried again, "
        f"{sum(r.commits_meanwhile for r in records)} commits of others meanwhile, "
        f"{joined_files(outcome.kept)} files joined, "
        f"{sum(r.seconds for r in records) / BACKFILLS:.2f} s each"
    )
