"""Cases B017 to B026, B051 and B060: checkpoints and what they belong to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, StringType, StructField, StructType

from rivermark import Field, Stream
from rivermark.model.errors import StreamFailed
from rivermark.model.topology import Topology
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.report import Report
from rivermark.runtime.supervision.reset import accept_state
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.helpers.crashes import forget_last_commit
from tests.spark.helpers.sensors import (
    MINUTE,
    READINGS,
    WINDOW,
    admit,
    reading,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

PER_WINDOW = windows()
WINDOWS = PER_WINDOW.tables[0]


@pytest.fixture
def two_windows(spark: SparkSession, settings: Settings) -> list[int]:
    """Two windows closed and one open; gives the counts of the closed ones."""
    admit(settings, reading(0), reading(1), reading(6), reading(11))
    run(spark, settings, PER_WINDOW)
    return counts(spark, settings)


def counts(spark: SparkSession, settings: Settings) -> list[int]:
    return [r["readings"] for r in rows(spark, settings, WINDOWS, "window_start", "readings")]


def checkpoint(settings: Settings, stream: Stream) -> Path:
    return Path(settings.lake().checkpoint(stream.name, 0))


def beat_of(settings: Settings, stream: Stream) -> Heartbeat:
    beat = HeartbeatStore(settings.state).get(stream.name)
    assert beat is not None
    return beat


def with_a_maximum() -> Stream:
    """The windows with one more aggregate: another state."""

    def build(readings: DataFrame) -> DataFrame:
        return per_window(
            readings,
            TumblingWindow(5 * MINUTE),
            "at",
            "sensor",
            readings=F.count(F.lit(1)),
            total=F.sum("temperature").cast("decimal(19,3)"),
            hottest=F.max("temperature"),
        )

    schema = StructType([*WINDOW.fields, StructField("hottest", DecimalType(9, 3))])
    return windows(build=build, writes=replace(WINDOWS, schema=schema))


def test_b017_a_changed_aggregation_is_refused_with_two_ways_out_and_not_tried_again(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    admit(settings, reading(20))

    with pytest.raises(StreamFailed, match=f"stream '{PER_WINDOW.name}' failed") as failed:
        run(spark, settings, with_a_maximum())

    message = str(failed.value)
    assert "was made by another declaration; undo the change, or start over" in message
    assert f"rivermark reset {PER_WINDOW.name}" in message
    assert str(checkpoint(settings, PER_WINDOW)) in message
    assert not beat_of(settings, PER_WINDOW).restartable
    assert counts(spark, settings) == two_windows == [2, 1]


def summed(minutes: float = 5, hot: float = 1000, swapped: bool = False) -> Stream:
    """The windows by another expression, filter or size, over the same state."""

    def build(readings: DataFrame) -> DataFrame:
        least, most = F.min("temperature"), F.max("temperature")
        return per_window(
            readings.where(F.col("temperature") < hot),
            TumblingWindow(minutes * MINUTE),
            "at",
            "sensor",
            readings=F.count(F.lit(1)),
            total=(most if swapped else least).cast("decimal(19,3)"),
            hottest=least if swapped else most,
        )

    return windows(build=build, writes=with_a_maximum().tables[0])


@pytest.mark.parametrize(
    "others",
    [
        [summed(swapped=True)],
        pytest.param([summed(hot=50), summed(minutes=10)], marks=pytest.mark.long),
    ],
    ids=["an expression", "a filter and a size"],
)
def test_b018_state_of_another_meaning_is_refused_until_it_is_accepted(
    spark: SparkSession, settings: Settings, others: list[Stream]
) -> None:
    admit(settings, reading(0), reading(1), reading(6))
    run(spark, settings, summed())
    admit(settings, reading(20))
    for changed in others:
        with pytest.raises(StreamFailed, match="was made by another declaration") as failed:
            run(spark, settings, changed)
        message = str(failed.value)
        assert f"rivermark reset {changed.name}" in message
        assert f"rivermark accept {changed.name}" in message
        assert "What changed: its plan had" in message
        assert not beat_of(settings, changed).restartable

    # The next plan numbers its expressions otherwise; columns that came later change nothing.
    run(spark, settings, summed())
    wider = replace(READINGS, contract=replace(READINGS.contract, fields=(
        *READINGS.contract.fields, Field("humidity", StringType()))))  # fmt: skip
    admit(settings, reading(30), ingest=wider)
    run(spark, settings, replace(summed(), reads=(wider,)))
    accept_state(settings, summed(), run_id="person")
    run(spark, settings, replace(summed(hot=50), reads=(wider,)))


def test_b020_a_checkpoint_whose_logs_were_deleted_is_refused(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    for log in ("offsets", "commits"):
        for path in (checkpoint(settings, PER_WINDOW) / log).iterdir():
            path.unlink()
    admit(settings, reading(20))

    with pytest.raises(StreamFailed, match="has state but no offsets") as failed:
        run(spark, settings, PER_WINDOW)
    assert f"rivermark reset {PER_WINDOW.name}" in str(failed.value)
    assert not beat_of(settings, PER_WINDOW).restartable
    assert counts(spark, settings) == two_windows


def test_b024_a_damaged_state_file_is_named_and_nothing_starts_from_empty(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    state = checkpoint(settings, PER_WINDOW) / "state"
    for path in state.rglob("*.delta"):
        path.write_bytes(path.read_bytes()[:10])
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    admit(settings, reading(12), reading(20))

    with pytest.raises(StreamFailed, match="missing or damaged") as failed:
        # A running engine still holds the state in memory; another process would not.
        run(renewed(spark), settings, PER_WINDOW)

    message = str(failed.value)
    assert PER_WINDOW.name in message
    assert str(state) in message
    assert "recompute" in message
    assert not beat_of(settings, PER_WINDOW).restartable
    assert counts(spark, settings) == two_windows


def renewed(spark: SparkSession) -> SparkSession:
    """The session with an engine that remembers no state."""
    engine = spark.sparkContext._jvm
    assert engine is not None
    engine.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    return spark


def test_b025_shuffle_partitions_stay_those_of_the_first_start_and_are_told(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    reports: list[Report] = []
    admit(settings, reading(12), reading(20))
    run_bounded(
        spark,
        settings.model_copy(update={"shuffle_partitions": 5}),
        Topology([PER_WINDOW]),
        [PER_WINDOW],
        run_id="more",
        on_report=reports.append,
    )

    assert counts(spark, settings) == [2, 1, 2]
    told = {r.stream: r.numbers["shuffle_partitions"] for r in reports}
    assert told == {PER_WINDOW.name: 2}


def test_b026_a_kill_in_a_batch_without_data_makes_nothing_come_again(
    spark: SparkSession, settings: Settings
) -> None:
    admit(settings, *[reading(n / 10) for n in range(100)])
    run(spark, settings, PER_WINDOW)
    # The last batch had no data: it closed the first window.
    assert forget_last_commit(settings, PER_WINDOW) == 1
    admit(settings, *[reading(10 + n) for n in range(10)], reading(30))

    run(spark, settings, PER_WINDOW)

    assert sum(counts(spark, settings)) == 110


def test_b060_an_input_that_was_made_anew_under_its_path_is_refused(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    Path(settings.lake().path(READINGS.admitted)).rename(Path(settings.home) / "aside")
    for _ in range(3):
        admit(settings, reading(0))

    with pytest.raises(
        StreamFailed, match="not the table that this checkpoint belongs to"
    ) as failed:
        run(spark, settings, PER_WINDOW)
    assert "reset" in str(failed.value)
    assert not beat_of(settings, PER_WINDOW).restartable
    assert counts(spark, settings) == two_windows


@pytest.mark.long
def test_b051_input_that_was_cleaned_away_unread_is_told_and_nothing_is_skipped(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    lake = settings.lake()
    for number in range(2, 5):
        admit(settings, reading(10 * number))
    table = Path(lake.path(READINGS.admitted))
    frame = spark.read.format("delta").load(str(table))
    rewrite = frame.coalesce(1).write.format("delta").mode("overwrite")
    rewrite.option("dataChange", "false").save(str(table))
    newest = max(table.glob("*.parquet"), key=lambda p: p.stat().st_mtime_ns)
    for path in table.glob("*.parquet"):
        if path != newest:
            path.unlink()

    with pytest.raises(StreamFailed, match="input that it had not read yet is gone") as failed:
        run(spark, settings, PER_WINDOW)
    assert "nothing was skipped" in str(failed.value)
    assert counts(spark, settings) == two_windows


@pytest.mark.long
def test_n055_a_log_that_an_earlier_release_cut_is_told_with_the_way_out(
    spark: SparkSession, settings: Settings, two_windows: list[int]
) -> None:
    admit(settings, reading(11))  # It moves no watermark, so it is in the last batch.
    run(spark, settings, PER_WINDOW)
    path = settings.lake().path(READINGS.admitted)
    table = DeltaTable(path)
    table.optimize.compact()
    table.create_checkpoint()
    for version in range(table.version()):
        (Path(path) / "_delta_log" / f"{version:020}.json").unlink()

    with pytest.raises(StreamFailed, match="maintenance of an earlier release cut it") as failed:
        run(spark, settings, PER_WINDOW)

    assert f"rivermark reset {PER_WINDOW.name}, then recompute the days" in str(failed.value)
    assert not beat_of(settings, PER_WINDOW).restartable
    assert counts(spark, settings) == two_windows
