"""Batches that executors write: commits of many files, the same results however they are cut."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Output, RivermarkError, Stream, Table
from rivermark.lake.append import by_executors
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.sink import Origin
from rivermark.operators.repeats import first_of_each
from rivermark.runtime.spark import computed, input_size
from rivermark.settings import Settings
from rivermark.sinks import FileSink
from tests.spark.helpers.crashes import crash_once
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    MINUTE,
    READINGS,
    admit,
    busiest,
    ordered,
    reading,
    rows,
    run,
    windows,
)
from tests.spark.helpers.stateful_streams import ECHOES, answers, land_feeds
from tests.spark.runtime.query.test_append import busiest_of, final_answers, final_windows

pytestmark = pytest.mark.spark

Adds = list[dict[str, Any]]
AS_THEY_COME = replace(READINGS.admitted, keys=())
"""Readings of which some come twice."""


@pytest.fixture
def by_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch is too large for the driver, and a file has few rows."""
    monkeypatch.setattr(input_size, "DRIVER_BYTES", 0)
    monkeypatch.setattr(computed, "DRIVER_ROWS", 0)
    monkeypatch.setattr(by_executors, "FILE_ROWS", 6)


def kept(**changes: Any) -> Stream:
    """Readings as they came, written anew: a cleansing that cleans nothing."""
    declared: dict[str, Any] = {
        "name": "test/kept",
        "reads": (READINGS,),
        "build": lambda frame: frame,
        "writes": replace(AS_THEY_COME, name="test/kept"),
        "description": "All readings.",
        "group": "test",
        "volume": "events",
    }
    return Stream(**(declared | changes))


def commits(lake: Lake, table: Table) -> list[Adds]:
    """The actions of each commit that adds files."""
    folder = Path(lake.path(table), "_delta_log")
    entries = [
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.glob("*.json"))
    ]
    found = [[action["add"] for action in entry if "add" in action] for entry in entries]
    return [adds for adds in found if adds]


def assert_in_order(adds: Adds, column: str) -> None:
    """Behind any file of a commit every time is above those that were read."""
    stats = [json.loads(each["stats"]) for each in adds]
    spans = [(each["minValues"][column], each["maxValues"][column]) for each in stats]
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def followers(source: Stream, suffix: str) -> list[Stream]:
    """Streams with state over the events of another, and over the results of one of them."""

    def named(stream: Stream, name: str) -> Stream:
        return replace(stream, name=name, writes=replace(stream.tables[0], name=name))

    per_window = named(windows(source), f"test/windows{suffix}")
    best = named(busiest(per_window), f"test/busiest{suffix}")
    once = kept(
        name=f"test/distinct{suffix}",
        reads=(source,),
        build=lambda frame: frame.transform(first_of_each("note", event_time="at", within=MINUTE)),
        writes=replace(READINGS.admitted, name=f"test/distinct{suffix}"),
        margin=MINUTE,
    )
    return [per_window, best, once, answers(source, suffix)]


def columns_of(stream: Stream) -> list[str]:
    """All columns but those that tell which of two equal copies was kept."""
    names = stream.tables[0].schema.fieldNames()
    return [n for n in names if not n.startswith("_") and n != "flags"]


def test_results_are_equal_for_every_cut_of_commits_of_many_files(
    spark: SparkSession, settings: Settings, landing: Landing, by_tasks: None
) -> None:
    land_feeds(landing, seed=5, files=4)
    run(spark, settings, READINGS, ECHOES)
    source = kept()
    summary = run(spark, settings, source)[source.name]
    lake = settings.lake()
    [adds] = commits(lake, source.tables[0])
    assert len(adds) > 4
    assert_in_order(adds, "at")
    readings = rows(spark, settings, READINGS.admitted)
    assert rows(spark, settings, source.tables[0]) == readings
    assert (summary.rows_in, summary.rows_out) == (len(readings), len(readings))

    results = []
    for files in (1, 3, 1000):
        streams = followers(source, f"_{files}")
        cut = settings.model_copy(update={"files_per_trigger": files})
        summaries = run(spark, cut, source, *streams)
        assert {s.dropped_by_watermark for s in summaries.values()} == {0}
        for each in streams:
            for added in commits(lake, each.tables[0]):
                assert_in_order(added, each.tables[0].event_time or "at")
        results.append([rows(spark, settings, s.tables[0], *columns_of(s)) for s in streams])
        if files == 1:
            assert summaries[streams[0].name].batches >= len(adds)
    assert results[0] == results[1] == results[2]

    per_window, best, once, joined = results[0]
    assert ordered(per_window) == final_windows(readings)
    assert ordered(best) == busiest_of(per_window)
    assert len({r["note"] for r in once}) == len(once) == len({r["note"] for r in readings})
    echoes = rows(spark, settings, ECHOES.admitted)
    assert ordered(joined) == final_answers(readings, echoes)


@pytest.mark.parametrize("is_trusted", [True, False], ids=["as they are", "put in order"])
def test_files_in_another_order_would_lose_rows(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    by_tasks: None,
    is_trusted: bool,
) -> None:
    """What decision 2 warned of: files of tasks that took rows as they came."""
    land_feeds(landing, seed=5, files=9)
    run(spark, settings, READINGS)
    lake, source = settings.lake(), kept()
    table = source.tables[0]
    create_table(lake, table)
    writer = TableWriter(lake, table, Origin(source.name, 0, datetime.now(UTC), "by hand"))
    files = writer.files()
    assert files is not None
    admitted = spark.read.format("delta").load(lake.path(READINGS.admitted))
    adds = by_executors.write_files(admitted.repartition(5, "note"), files, None)
    writer.append_files_once([*reversed(adds)], 0, in_order=is_trusted)
    assert rows(spark, settings, table) == rows(spark, settings, READINGS.admitted)
    assert len(commits(lake, table)[0]) > 4

    [per_window, *_] = followers(source, "")
    cut = settings.model_copy(update={"files_per_trigger": 1})
    dropped = run(spark, cut, per_window)[per_window.name].dropped_by_watermark
    assert (dropped > 0) == is_trusted


def split() -> Stream:
    """Warm and cold readings in two tables, the warm ones in files too."""
    warm, cold = (replace(AS_THEY_COME, name=f"test/{n}") for n in ("warm", "cold"))
    is_warm = F.col("temperature") > 3
    return kept(
        name="test/split",
        writes=(
            Output(warm, where=lambda: is_warm, sinks=(FileSink(format="jsonl"),)),
            Output(cold, where=lambda: ~is_warm),
        ),
    )


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("table", ["test/warm", "test/cold"])
def test_a_batch_of_files_that_was_killed_is_there_once_in_every_output(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    by_tasks: None,
    table: str,
    before: bool,
) -> None:
    land_feeds(landing, seed=7, files=3)
    run(spark, settings, READINGS)
    with pytest.MonkeyPatch.context() as patch:
        crash_once(patch, table, before=before)
        with pytest.raises(RivermarkError):
            run(spark, settings, split())
    run(spark, settings, split())
    admit(settings, reading(0.5, "new", 9.0, note="new"))
    run(spark, settings, split())

    readings = rows(spark, settings, READINGS.admitted)
    warm, cold = (rows(spark, settings, t) for t in split().tables)
    assert warm == [r for r in readings if r["temperature"] > 3]
    assert cold == [r for r in readings if r["temperature"] <= 3]
    lines = Path(settings.lake().root).glob("exports/test/warm/**/*.jsonl")
    exported = [json.loads(line) for path in lines for line in path.read_text().splitlines()]
    assert sorted(e["note"] for e in exported) == sorted(r["note"] for r in warm)
    for each in split().tables:
        assert len(commits(settings.lake(), each)[0]) > 1


def test_what_spark_gives_up_to_collect_is_computed_again_for_executors(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    land_feeds(landing, seed=5, files=9)
    run(spark, settings, READINGS)
    given_up = []

    def give_up(frame: DataFrame) -> None:
        given_up.append(frame.toArrow().num_rows)

    monkeypatch.setattr(computed, "_collected", give_up)
    monkeypatch.setattr(computed, "DRIVER_ROWS", 0)
    per_window = windows()
    summary = run(spark, settings, per_window)[per_window.name]

    found = rows(spark, settings, per_window.tables[0])
    assert ordered(found) == final_windows(rows(spark, settings, READINGS.admitted))
    assert summary.rows_out == len(found) == sum(given_up)
    assert len(found) > 5
