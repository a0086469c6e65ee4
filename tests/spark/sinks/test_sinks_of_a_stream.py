"""Streams whose rows leave by several sinks: run, recomputed, undone, reset."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyarrow import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import (
    ConsoleSink,
    DeltaUpsert,
    FileSink,
    Output,
    RivermarkError,
    Stream,
    Table,
    Topology,
)
from rivermark.backfill.undo import undo
from rivermark.runtime.spark import input_size
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings
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
