"""A small world of sensor readings that the engine's tests run on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Contract, Daily, Field, Ingest, Rule, Stream, Table, Topology
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import Origin
from rivermark.model.stream import AnyStream
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.spark.helpers.delta_rows import delta_rows

TEN: Final = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE: Final = timedelta(minutes=1)
FIRST_DAY: Final = date(2024, 1, 1)
FIRST_MOMENT: Final = datetime(2024, 1, 1, tzinfo=UTC)
FOLDER: Final = "readings"

READING: Final = Contract(
    fields=(
        Field("sensor", StringType(), ("id",), required=True),
        Field("at", TimestampType(), ("timestamp",), required=True),
        Field("temperature", DecimalType(9, 3), required=True),
        Field("note", StringType()),
    ),
    event_time="at",
    keys=("sensor", "at"),
    rules=(
        Rule("too_hot", "temperature > 1000", "quarantine", "Above 1000 degrees."),
        Rule("freezing", "temperature < 0", "flag", "Below zero."),
    ),
)

FILES: Final = FileSource(
    folder=FOLDER,
    pattern="*.json,*.json.gz,*.csv,*.parquet",
    format=None,
    settle=timedelta(0),
    unterminated_settle=timedelta(seconds=0.3),
)

READINGS: Final = Ingest(
    name="test/readings",
    source=FILES,
    contract=READING,
    lateness=MINUTE,
    description="Readings of sensors.",
    group="test",
    days=Daily(column="at", start=FIRST_DAY),
)


def readings(**changes: Any) -> Ingest:
    """The readings with another source or contract: keys of either, or of the ingest itself."""
    source = {k: changes.pop(k) for k in [*changes] if k in FileSource.__dataclass_fields__}
    contract = {k: changes.pop(k) for k in [*changes] if k in Contract.__dataclass_fields__}
    return replace(
        READINGS,
        source=replace(FILES, **source),
        contract=replace(READING, **contract),
        **changes,
    )


def one_file_a_batch(patch: pytest.MonkeyPatch, *ingests: Ingest) -> list[Ingest]:
    """The ingests, with each file as a batch and a commit of its own within one run."""
    patch.setattr("rivermark.runtime.query.ingest.PLANNED_PER_TRIGGER", 1)
    return [
        replace(i, source=replace(i.source, max_files=1))
        for i in ingests
        if isinstance(i.source, FileSource)
    ]


def reading(
    minute: float, sensor: str | None = "s1", temperature: object = 20.5, **more: object
) -> str:
    """A reading so many minutes after ten, as a JSON line."""
    at = (TEN + minute * MINUTE).isoformat().replace("+00:00", "Z")
    return json.dumps({"sensor": sensor, "at": at, "temperature": temperature, **more})


def admit(settings: Settings, *lines: str, ingest: Ingest = READINGS) -> None:
    """One commit of readings in the admitted table, for tests that are not about the door."""
    lake, table = settings.lake(), ingest.admitted
    create_table(lake, table)
    writer = TableWriter(lake, table, Origin(ingest.name, 0, FIRST_MOMENT, "admit"))
    batch = int(writer.last.metadata["batch"]) + 1 if writer.last else 0
    place = {"_file": f"{batch:03}.json", "_ingest_batch": batch, "flags": []}
    rows = []
    for number, line in enumerate(lines, start=1):
        row = json.loads(line)
        at, degrees = datetime.fromisoformat(row["at"]), Decimal(str(row["temperature"]))
        rows.append({**row, **place, "_row": number, "at": at, "temperature": degrees})
    writer.append_once(rows_of(table, rows), batch)


WINDOW: Final = StructType(
    [
        StructField("sensor", StringType()),
        StructField("window_start", TimestampType()),
        StructField("window_end", TimestampType()),
        StructField("readings", LongType()),
        StructField("total", DecimalType(19, 3)),
    ]
)


def windows(source: Ingest | Stream = READINGS, minutes: float = 5, **changes: Any) -> Stream:
    """Readings per sensor and tumbling window."""

    def per_sensor(rows: DataFrame) -> DataFrame:
        return per_window(
            rows,
            TumblingWindow(minutes * MINUTE),
            "at",
            "sensor",
            readings=F.count(F.lit(1)),
            total=F.sum("temperature").cast("decimal(19,3)"),
        )

    declared: dict[str, Any] = {
        "name": "test/windows",
        "reads": (source,),
        "build": per_sensor,
        "writes": Table(
            name="test/windows",
            schema=WINDOW,
            description="Readings a window.",
            event_time="window_end",
            keys=("sensor", "window_end"),
            days=Daily(column="window_start", start=FIRST_DAY),
        ),
        "description": "Readings per sensor and window.",
        "group": "test",
    }
    return Stream(**(declared | changes))


def busiest(source: Stream) -> Stream:
    """The busiest sensor of each window: a second aggregation over the first one's results."""

    def best(rows: DataFrame) -> DataFrame:
        top = F.max(F.struct("readings", "sensor"))
        return (
            rows.groupBy("window_end")
            .agg(top.alias("top"))
            .select("window_end", "top.readings", "top.sensor")
        )

    return Stream(
        name="test/busiest",
        reads=(source,),
        build=best,
        writes=Table(
            name="test/busiest",
            schema=StructType([WINDOW["window_end"], WINDOW["readings"], WINDOW["sensor"]]),
            description="The busiest sensor of each window.",
            event_time="window_end",
            keys=("window_end",),
            days=Daily(column="window_end", start=FIRST_DAY),
        ),
        description="The busiest sensor of each window.",
        group="test",
    )


def run(
    spark: SparkSession, settings: Settings, *streams: AnyStream, run_id: str = "run"
) -> dict[str, StreamSummary]:
    """Drain the streams once."""
    return run_bounded(spark, settings, Topology(streams), streams, run_id=run_id)


def rows(spark: SparkSession, settings: Settings, table: Table, *columns: str) -> list[Row]:
    """The rows of a table by these columns (default: all declared), in order of their values."""
    names: Sequence[str] = columns or table.schema.fieldNames()
    return sorted(delta_rows(settings.lake().path(table), *names), key=by_value)


def by_value(row: tuple[object, ...]) -> list[tuple[bool, object]]:
    """A key to sort rows by, in which nothing comes before everything."""
    return [(v is not None, 0 if v is None else v) for v in row]


def ordered(found: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Rows as plain tuples in the order of `rows`."""
    return sorted((tuple(row) for row in found), key=by_value)
