"""Files that change after they were read (case B044): noticed by content, and read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rivermark import Topology
from rivermark.backfill import retake
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay import in_place
from rivermark.ingest import plan, split_outcomes
from rivermark.ingest.plan import open_source
from rivermark.model.errors import RivermarkError
from rivermark.monitor.changed_files import changed_files
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.spark.helpers.crashes import CrashError
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows, run, windows

pytestmark = pytest.mark.spark


def test_b044_a_plan_and_a_ledger_of_an_earlier_release_go_on(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_new_columns(schema: StructType) -> StructType:
        return StructType([f for f in schema if f.name not in ("digest", "replaced")])

    landing.put(f"{FOLDER}/1.json", reading(0))
    with monkeypatch.context() as patch:
        patch.setattr(plan, "PLAN_SCHEMA", without_new_columns(plan.PLAN_SCHEMA))
        earlier = split_outcomes.INGEST_FILES
        earlier = replace(earlier, schema=without_new_columns(earlier.schema))
        for module in ("ingest.split_outcomes", "ingest.admission"):
            patch.setattr(f"rivermark.{module}.INGEST_FILES", earlier)
        run(spark, settings, READINGS)
    landing.put(f"{FOLDER}/2.json", reading(1))
    run(spark, settings, READINGS)

    assert len(rows(spark, settings, READINGS.admitted)) == 2
    ledger = rows(spark, settings, split_outcomes.INGEST_FILES)
    assert [row["digest"] is None for row in sorted(ledger, key=lambda r: r["file"])] == [
        True,
        False,
    ]


@pytest.mark.long
def test_b044_a_changed_file_is_read_again_and_nothing_of_it_is_lost_or_doubled(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    per_window = windows()
    streams = (READINGS, per_window)
    path = landing.put(f"{FOLDER}/1.json", reading(0), reading(1, "s2"), "{", reading(2, "s3"))
    landing.put(f"{FOLDER}/2.json", reading(3, "s4"), reading(60 * 24 * 3))
    run(spark, settings, *streams)
    run(spark, settings, *streams)
    assert totals(spark, settings) == {"s1": 20.5, "s2": 20.5, "s3": 20.5, "s4": 20.5}
    path.write_text("".join(f"{line}\n" for line in (reading(0, "s1", 30), reading(1, "s5"), "[")))
    assert changed_files(settings, READINGS).keys() == {"1.json"}

    context = BackfillContext(
        settings=settings, topology=Topology(streams), spark=lambda: spark, run_id="again"
    )
    with monkeypatch.context() as patch:
        # Killed when only the last commits are missing, and called again.
        patch.setattr(in_place, "rows_of", crash)
        with pytest.raises(CrashError):
            retake.retake(context, READINGS, "1.json")
    with monkeypatch.context() as patch:
        patch.setattr(in_place, "recompute_downstream", crash)
        with pytest.raises(CrashError):
            retake.retake(context, READINGS, "1.json")
    done = retake.retake(context, READINGS, "1.json")

    assert done.former == {"rows": 3, "admitted": 2, "late": 0, "quarantined": 1}
    assert (done.outcome.rows, done.outcome.admitted, done.outcome.quarantined) == (3, 2, 1)
    assert [r["sensor"] for r in rows(spark, settings, READINGS.admitted, "sensor")] == [
        *("s1", "s1", "s4", "s5"),
    ]
    assert totals(spark, settings) == {"s1": 30, "s4": 20.5, "s5": 20.5}
    kept = rows(spark, settings, READINGS.quarantine, "_row", "reasons", "details")
    kept_of_first = [(r["_row"], r["details"]) for r in kept if r["reasons"] == ["file_replaced"]]
    assert kept_of_first == [
        (1, "was admitted"),
        (2, "was admitted"),
        (3, "was quarantined: unparsable_json"),
        (4, "was admitted"),
    ]
    assert rows_accounted_for(settings, READINGS).passed
    assert changed_files(settings, READINGS) == {}
    assert open_source(settings.lake(), settings.landing_root, READINGS).discover().changed == []
    run(spark, settings, *streams)
    assert totals(spark, settings) == {"s1": 30, "s4": 20.5, "s5": 20.5}
    with pytest.raises(RivermarkError, match=r"has read no file 'x\.json'"):
        retake.retake(context, READINGS, "x.json")


def test_b044_a_file_that_could_not_be_read_is_read_once_it_is_mended(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    path = landing.put_bytes(f"{FOLDER}/1.parquet", b"PAR1 cut")
    landing.put(f"{FOLDER}/2.json", reading(0))
    run(spark, settings, READINGS)
    table = pa.table({"sensor": ["s2"], "at": ["2024-03-01T10:00:00Z"], "temperature": [1.5]})
    pq.write_table(table, path)

    context = BackfillContext(
        settings=settings, topology=Topology([READINGS]), spark=lambda: spark, run_id="again"
    )
    version = DeltaTable(settings.lake().path(READINGS.admitted)).version()
    retake.retake(context, READINGS, "1.parquet")

    admitted = rows(spark, settings, READINGS.admitted, "sensor")
    assert [r["sensor"] for r in admitted] == ["s1", "s2"]
    [kept] = rows(spark, settings, READINGS.quarantine, "reasons", "details")
    assert kept["reasons"] == ["file_replaced"]
    assert kept["details"].startswith("was quarantined: file_corrupt")
    assert rows_accounted_for(settings, READINGS).passed
    log = Path(settings.lake().path(READINGS.admitted), "_delta_log")
    actions = (log / f"{version + 1:020}.json").read_text()
    assert '"remove"' in actions  # A commit that only adds would be new input to streams.


def crash(*_: object, **__: object) -> None:
    raise CrashError("killed")


def totals(spark: SparkSession, settings: Settings) -> dict[str, float]:
    """Degrees by sensor, of the windows of the first hour."""
    found = rows(spark, settings, windows().tables[0], "sensor", "window_start", "total")
    return {r["sensor"]: float(r["total"]) for r in found}
