"""Whether state fits a change, by a manifest of the state, and the same ones by a start."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from rivermark import Stream
from rivermark.model.errors import RivermarkError, StreamFailed
from rivermark.model.topology import Topology
from rivermark.operators.windows import TumblingWindow
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.spark import run_process
from rivermark.runtime.savepoint.guard import deployment_of, fits_of, read_deployment
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading
from tests.spark.helpers.windowed_streams import Counted, Read, windowed

pytestmark = pytest.mark.spark


class Count(KeyedProcess[Read, Counted]):
    """Readings by sensor so far."""

    key = "sensor"
    time = "at"
    order = "event_time"
    seen: ValueState[int]

    def __init__(self, step: int = 1) -> None:
        self.step = step

    def on_event(self, event: Read, ctx: Context[Counted]) -> None:
        self.seen.value = (self.seen.value or 0) + self.step
        ctx.emit(Counted("0", event.sensor, event.at, event.at, self.seen.value))


class CountFurther(Count):
    """With a state that was added."""

    last: ValueState[int]


class CountText(KeyedProcess[Read, Counted]):
    """The state has another type."""

    key = "sensor"
    time = "at"
    order = "event_time"
    seen: ValueState[str]

    def on_event(self, event: Read, ctx: Context[Counted]) -> None:
        self.seen.value = f"{self.seen.value or ''}+"


MINUTES = timedelta(minutes=10)
WINDOWS = windowed("test/windows", TumblingWindow(MINUTES))
COUNTS = windowed("test/counts", build=run_process(Count, buckets=2))
WRITES = COUNTS.tables[0]
NARROW = StructType([f for f in WRITES.schema.fields if f.name != "readings"])
RETYPED = StructType([*NARROW.fields, StructField("readings", StringType())])

CHANGES: list[tuple[str, Stream, str, str]] = [
    ("nothing", COUNTS, "compatible", ""),
    ("a step", replace(COUNTS, build=run_process(partial(Count, 2))), "decision", "accept"),
    ("a type", replace(COUNTS, build=run_process(CountText, buckets=2)), "incompatible", "reset"),
    ("windows", windowed("test/windows", TumblingWindow(2 * MINUTES)), "decision", "accept"),
    ("buckets", replace(COUNTS, build=run_process(Count, buckets=4)), "compatible", ""),
    ("a state", replace(COUNTS, build=run_process(CountFurther, buckets=2)), "compatible", ""),
]


def settle(spark: SparkSession, settings: Settings, *streams: Stream) -> None:
    run_bounded(spark, settings, Topology([READINGS, *streams]), [READINGS, *streams], run_id="r")


@pytest.fixture
def manifest(spark: SparkSession, settings: Settings, landing: Landing, tmp_path: Path) -> Path:
    lines = [reading(minute, f"s{minute % 2}", minute / 8) for minute in range(0, 25, 3)]
    landing.put(f"{FOLDER}/0.json", *lines)
    settle(spark, settings, WINDOWS, COUNTS)
    file = tmp_path / "manifest.json"
    made = deployment_of(settings, (READINGS, WINDOWS, COUNTS))
    file.write_bytes(msgspec.json.encode(made))
    return file


def test_a_manifest_says_of_each_change_what_a_start_says(
    spark: SparkSession, settings: Settings, manifest: Path
) -> None:
    deployed = read_deployment(manifest)
    assert {*deployed.streams} == {READINGS.name, WINDOWS.name, COUNTS.name}

    for name, changed, kind, way in CHANGES:
        (fit,) = (v for v in fits_of(spark, [changed], deployed) if v.stream == changed.name)
        assert fit.kind == kind, (name, fit)
        if kind == "compatible":
            settle(spark, settings, changed)
        else:
            with pytest.raises(StreamFailed) as refusal:
                settle(spark, settings, changed)
            assert all(change in str(refusal.value) for change in fit.changes), name
        assert way in fit.advice


def test_a_column_with_another_type_and_a_new_name_over_the_same_table_are_refused(
    spark: SparkSession, manifest: Path
) -> None:
    deployed = read_deployment(manifest)
    retyped = replace(WINDOWS, writes=replace(WINDOWS.tables[0], schema=RETYPED))
    renamed = replace(COUNTS, name="test/renamed")

    found = [*fits_of(spark, [READINGS, retyped, renamed], deployed)]

    sentences = {fit.stream: str(fit) for fit in found if fit.kind != "compatible"}
    assert "is incompatible: table 'test/windows' on disk" in sentences[WINDOWS.name]
    assert "readings: bigint on disk, string declared" in sentences[WINDOWS.name]
    assert "holds the rows of stream 'test/counts'" in sentences["test/renamed"]


def test_what_is_no_manifest_is_named_with_the_command_that_writes_one(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{}")

    with pytest.raises(RivermarkError, match="rivermark manifest --output"):
        read_deployment(tmp_path / "m.json")
