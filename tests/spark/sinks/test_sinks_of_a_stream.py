"""Streams whose rows leave by several sinks: run, recomputed, undone, reset."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyarrow import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Output, RivermarkError, Stream, Table, Topology
from rivermark.backfill.undo import undo
from rivermark.runtime.spark import input_size
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings
from rivermark.sinks import ConsoleSink, DeltaUpsert, FileSink
from tests.spark.helpers.crashes import CrashError, crash_once
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import (
    READINGS,
    TEN,
    admit,
    ordered,
    reading,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

DAY_IN_MINUTES = 24 * 60


def hotter(frame: DataFrame) -> DataFrame:
    """Latest readings, each a degree higher."""
    return frame.withColumn("temperature", (F.col("temperature") + 1).cast("decimal(9,3)"))


LATEST = Table(
    name="test/latest",
    schema=READINGS.admitted.schema,
    description="The latest reading of each sensor.",
    keys=("sensor",),
    days=READINGS.days,
)


def latest() -> Stream:
    """The latest reading of each sensor, without those that were withdrawn; also as files."""
    upsert = DeltaUpsert(version="at", deleted="note = 'withdrawn'")
    return Stream(
        reads=(READINGS,),
        build=lambda frame: frame,
        writes=(Output(LATEST, sinks=(upsert, FileSink(format="jsonl"))),),
        group="test",
        volume="events",
    )


def exported() -> Stream:
    """Windows that are also written to Parquet files and shown."""
    output = Output(windows().tables[0], sinks=(FileSink(), ConsoleSink(rows=1)))
    return windows(writes=(output,))


def of_files(settings: Settings) -> list[tuple[object, ...]]:
    """The windows in the Parquet files, with moments in UTC as Spark gives them to Python."""
    table = windows().tables[0]
    folder = Path(settings.lake().root) / "exports" / table.name
    files = dataset.dataset([str(p) for p in folder.glob("day=*/*.parquet")])
    found = files.to_table(columns=table.schema.fieldNames()).to_pylist()
    return ordered(
        tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row.values())
        for row in found
    )


@pytest.mark.long
def test_rows_reach_every_sink_and_follow_what_becomes_of_the_table(
    spark: SparkSession,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    admit(
        settings,
        reading(0, "a", 20.0),
        reading(1, "b", 21.0),
        reading(DAY_IN_MINUTES, "a", 22.0),
    )
    streams = (exported(), latest())
    run(spark, settings, *streams)
    # The second batch is written by executors.
    monkeypatch.setattr(input_size, "DRIVER_BYTES", 0)
    admit(
        settings,
        reading(DAY_IN_MINUTES + 1, "b", 0.0, note="withdrawn"),
        reading(DAY_IN_MINUTES + 2, "c", 23.0),
        reading(2 * DAY_IN_MINUTES, "c", 24.0),
    )
    run(spark, settings, *streams)

    table = windows().tables[0]
    published = rows(spark, settings, table)
    assert len(published) == 5
    assert [tuple(row) for row in published] == of_files(settings)
    assert "test/windows, batch" in capsys.readouterr().out
    of_sensors = rows(spark, settings, LATEST, "sensor", "temperature")
    assert [(r["sensor"], int(r["temperature"])) for r in of_sensors] == [("a", 22), ("c", 24)]
    lines = Path(settings.lake().root).glob("exports/test/latest/day=*/*.jsonl")
    assert sum(len(path.read_text().splitlines()) for path in lines) == 6

    day = TEN.date()
    fewer = replace(exported(), build=lambda frame: exported().build(frame.where("sensor = 'a'")))
    done = recompute_days(spark, settings, fewer, day)
    assert done.tables[table.name].difference.removed == 1
    assert len(done.tables[table.name].sinks) == 3
    assert [tuple(row) for row in rows(spark, settings, table)] == of_files(settings)

    undo(settings, exported(), done.id, run_id="undo")
    assert rows(spark, settings, table) == published
    assert [tuple(row) for row in published] == of_files(settings)

    next_day = day + timedelta(days=1)
    warmer = recompute_days(spark, settings, replace(latest(), build=hotter), next_day)
    of_sensors = rows(spark, settings, LATEST, "sensor", "temperature")
    assert [(r["sensor"], int(r["temperature"])) for r in of_sensors] == [("a", 23), ("c", 24)]
    with pytest.raises(RivermarkError, match="keeps the latest row of each key"):
        undo(settings, latest(), warmer.id, run_id="undo")

    report = reset(settings, Topology(streams), exported(), run_id="reset")
    assert len(report.removed) == 2
    run(spark, settings, *streams)
    assert rows(spark, settings, table) == published
    assert [tuple(row) for row in published] == of_files(settings)


@pytest.mark.parametrize("after", ["test/found", "test/not_found"])
def test_r09_a_batch_that_is_repeated_after_a_kill_is_what_it_was_in_every_output(
    spark: SparkSession, settings: Settings, after: str
) -> None:
    """As a stream with `enrich`, whose service fails for a row once and finds it later."""
    found, not_found = (
        Table(name=f"test/{name}", schema=READINGS.admitted.schema, description="Readings.")
        for name in ("found", "not_found")
    )

    def asked(*, is_well: bool) -> Stream:
        answered = F.lit(is_well) | (F.col("sensor") == "a")
        note = F.concat(F.col("sensor"), F.lit(" well" if is_well else " ill"))
        outputs = (
            Output(found, where=lambda: answered, sinks=(FileSink(format="jsonl"),)),
            Output(not_found, where=lambda: ~answered, sinks=(FileSink(format="jsonl"),)),
        )
        return Stream(
            name="test/asked",
            reads=(READINGS,),
            build=lambda frame: frame.withColumn("note", note),
            writes=outputs,
            group="test",
            volume="events",
        )

    admit(settings, reading(0, "a"), reading(1, "b"))
    with pytest.MonkeyPatch.context() as patch:
        crash_once(patch, after)
        with pytest.raises(RivermarkError):
            run(spark, settings, asked(is_well=False))
    run(spark, settings, asked(is_well=True))
    admit(settings, reading(2, "b"))
    run(spark, settings, asked(is_well=True))

    assert [r["note"] for r in rows(spark, settings, found, "note")] == ["a ill", "b well"]
    assert [r["note"] for r in rows(spark, settings, not_found, "note")] == ["b ill"]
    for table in (found, not_found):
        folder = Path(settings.lake().root) / "exports" / table.name
        lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
        notes = sorted(json.loads(line)["note"] for line in lines)
        assert notes == [r["note"] for r in rows(spark, settings, table, "note")]


def test_r09_files_beside_an_upsert_get_what_was_merged_before_the_kill(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(settings, reading(0, "a", 20.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rivermark.sinks.files._Writer.write", Mock(side_effect=CrashError))
        with pytest.raises(RivermarkError):
            run(spark, settings, latest())
    # What is computed again is less than what the table holds: of one version the greater counts.
    less = F.lit(10).cast("decimal(9,3)")
    cooler = replace(latest(), build=lambda rows: rows.withColumn("temperature", less))
    run(spark, settings, cooler)

    [line] = Path(settings.lake().root).glob("exports/test/latest/day=*/*.jsonl")
    [row] = rows(spark, settings, LATEST, "temperature")
    assert json.loads(line.read_text())["temperature"] == str(row["temperature"]) == "20.000"
