"""Days computed again of what keeps state: a join of two streams, and a process function."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from pyspark.sql import SparkSession

from rivermark import Stream
from rivermark.process.spark import run_process
from rivermark.settings import Settings
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import admit, reading, rows, run
from tests.spark.helpers.stateful_streams import ECHOES, answers
from tests.spark.helpers.windowed_streams import ProcessSessions, windowed

pytestmark = pytest.mark.spark

SESSIONS = windowed(
    "test/sessions", margin=timedelta(hours=1), build=run_process(ProcessSessions, buckets=2)
)


@pytest.mark.parametrize("stream", [answers(), SESSIONS], ids=lambda stream: stream.name)
def test_a_day_computed_again_is_the_day_that_was_streamed(
    spark: SparkSession, settings: Settings, stream: Stream
) -> None:
    closes = reading(4 * 24 * 60, note="closes")
    admit(settings, *[reading(n, note=f"{n}") for n in (0, 1, 60)], closes)
    admit(settings, reading(1, note="1"), closes, ingest=ECHOES)
    run(spark, settings, stream)
    (table,) = stream.tables
    before = rows(spark, settings, table)

    done = recompute_days(spark, settings, stream, date(2024, 3, 1))

    assert done.same
    assert done.tables[table.name].difference.rows_after == (3 if stream.reads[1:] else 2)
    assert rows(spark, settings, table) == before
