"""A stream all of whose batches are too large for the driver, with every kind of sink."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from rivermark import Output, Stream, Table
from rivermark.settings import Settings
from rivermark.sinks import FileSink, KafkaSink, PostgresAppend, PostgresUpsert, WebhookSink
from rivermark.sinks.output import OutputWriter
from tests.spark.helpers.kafka import Topics, committed_messages
from tests.spark.helpers.sensors import READINGS, admit, reading, rows, run
from tests.unit.sinks.conftest import connected, new_schema
from tests.web_service import serving

__all__ = ["new_schema"]
pytestmark = pytest.mark.spark
SENT = Table(
    name="test/sent",
    schema=READINGS.admitted.schema,
    description="Readings that leave by every sink.",
    keys=("sensor", "at"),
    days=READINGS.days,
)


@pytest.mark.usefixtures("new_schema")
@pytest.mark.parametrize("driver_bytes", [0, None], ids=["by tasks", "in the driver"])
def test_every_sink_gets_the_rows_of_large_batches(
    spark: SparkSession,
    tmp_path: Path,
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    driver_bytes: int | None,
) -> None:
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1, driver_bytes=driver_bytes)
    in_files = Mock(side_effect=OutputWriter.in_files, autospec=True)
    monkeypatch.setattr(OutputWriter, "in_files", lambda *args: in_files(*args))
    topic = topics.make(partitions=2)
    with serving(lambda _: (204, b"")) as service:
        stream = Stream(
            reads=(READINGS,),
            build=lambda frame: frame,
            writes=(
                Output(
                    SENT,
                    sinks=(
                        FileSink(format="jsonl"),
                        KafkaSink(topic=topic, brokers=topics.brokers, key=("sensor",)),
                        PostgresAppend(table="sent", database="$TEST_DATABASE"),
                        PostgresUpsert(table="kept", database="$TEST_DATABASE", version="at"),
                        WebhookSink(url=service.url),
                    ),
                ),
            ),
            group="test",
            volume="events",
        )
        for first in (0, 10):
            admit(settings, *(reading(n, s, n) for n in range(first, first + 10) for s in "ab"))
            run(spark, settings, stream)
    assert in_files.call_count == (2 if driver_bytes == 0 else 0)
    expected = [(r["sensor"], int(r["temperature"])) for r in rows(spark, settings, SENT)]
    assert sorted(expected) == [(sensor, n) for sensor in "ab" for n in range(20)]

    def of_json(lines: list[bytes]) -> list[tuple[str, int]]:
        return sorted((r["sensor"], int(float(r["temperature"]))) for r in map(json.loads, lines))

    def of_postgres(table: str) -> list[tuple[str, int]]:
        query = f"SELECT sensor, temperature::int FROM {table} ORDER BY 1, 2"  # noqa: S608
        with connected() as connection:
            return [(sensor, n) for sensor, n in connection.execute(query)]

    files = Path(settings.lake().root).glob("exports/test/sent/day=*/*.jsonl")
    found: dict[str, Callable[[], list[tuple[str, int]]]] = {
        "files": lambda: of_json([x for f in files for x in f.read_bytes().splitlines()]),
        "topic": lambda: of_json([m.value() or b"" for m in committed_messages(topics, topic)]),
        "webhook": lambda: of_json([request.body for request in service.requests]),
        "append": lambda: of_postgres("sent"),
        "upsert": lambda: of_postgres("kept"),
    }
    for name, read in found.items():
        assert read() == sorted(expected), name
