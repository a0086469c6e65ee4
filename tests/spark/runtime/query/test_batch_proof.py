"""A live batch closes what its own rows prove, and nothing is lost by it however they arrive."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

import pytest
from pyspark.sql import SparkSession

from rivermark import Stream, Topology
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import row_count
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import Running, running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import MINUTE as A_MINUTE
from tests.spark.helpers.sensors import READINGS, TEN, admit, reading, rows, run
from tests.spark.helpers.stateful_streams import ECHOES, land_feeds
from tests.spark.runtime.query.test_closing_batch import PER_WINDOW, all_kinds, counts, results

pytestmark = pytest.mark.spark


def live(
    spark: SparkSession, settings: Settings, streams: Sequence[Stream]
) -> AbstractContextManager[Running]:
    """The streams, live in a thread beside the test."""

    def body(stop: threading.Event) -> object:
        topology = Topology([READINGS, ECHOES, *streams])
        return run_continuous(spark, settings, topology, streams, run_id="live", stop=stop)

    return running(body)


def batches(settings: Settings, stream: Stream) -> list[tuple[int, str]]:
    """The batches that wrote rows, each with the watermark by which it ran."""
    log = CommitLog(settings.lake().path(stream.tables[0]))
    metadata = [commit.metadata for commit in log.backwards() if "batch" in commit.metadata]
    return [(each["batch"], each["watermark"]) for each in reversed(metadata)]


def test_the_batch_that_brings_the_proof_closes_the_window(
    spark: SparkSession, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    admit(settings, reading(0), reading(1))
    table = PER_WINDOW.tables[0]
    with live(spark, settings, [PER_WINDOW]) as thread:
        # The first batch of a checkpoint knows nothing of the place from which it reads.
        admit(settings, reading(2))
        admit(settings, reading(3))
        for minute, number in ((6.5, 1), (12, 2), (17, 3)):
            # By then it has looked once more, and found nothing to close.
            time.sleep(settings.trigger_seconds + 1)
            admit(settings, reading(minute))
            wait_until(
                lambda: row_count(settings.lake(), table) == number,  # noqa: B023
                reason=f"window {number} is closed",
                alive=thread.alive,
            )
    assert "is started again" not in caplog.text
    assert counts(spark, settings) == [4, 1, 1]
    written = batches(settings, PER_WINDOW)
    (second, at_twelve), (third, at_seventeen) = written[1:]
    assert third == second + 1, "a batch without data came between"
    assert at_twelve == (TEN + 11 * A_MINUTE).isoformat()
    assert at_seventeen == (TEN + 16 * A_MINUTE).isoformat()


@pytest.mark.long
def test_live_streams_of_every_kind_publish_what_a_bounded_run_does(
    spark: SparkSession, settings: Settings, landing: Landing, caplog: pytest.LogCaptureFixture
) -> None:
    whole, one_by_one = all_kinds("_whole"), all_kinds("_live")
    with live(spark, settings, one_by_one) as thread:
        for number in range(8):
            land_feeds(landing, seed=number, files=2, hour=number / 20)
            run(spark, settings, READINGS, ECHOES)
        land_feeds(landing, seed=9, files=1, hour=3)
        run(spark, settings, READINGS, ECHOES)
        run(spark, settings, *whole)
        expected = results(spark, settings, whole)
        assert all(expected)
        for stream, of_whole in zip(one_by_one, expected, strict=True):
            wait_until(
                lambda: row_count(settings.lake(), stream.tables[0]) >= len(of_whole),  # noqa: B023
                reason=f"{stream.name} has closed what the watermark has passed",
                alive=thread.alive,
            )
    assert "is started again" not in caplog.text
    assert results(spark, settings, one_by_one) == expected
    assert rows(spark, settings, READINGS.admitted)
