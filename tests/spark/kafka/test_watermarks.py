"""Partitions of a topic with a watermark each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark.ingest.plan import BatchPlanner
from rivermark.ingest.producers import Producer, Producers
from rivermark.ingest.watermark import Progress
from rivermark.ingest.watermark_recovery import admission_watermark
from rivermark.sources import PerProducer
from tests.spark.helpers.kafka import Topics, deploy, millis, planned
from tests.spark.helpers.source_contract import FIRST, Deployment, event

pytestmark = pytest.mark.spark

SECOND = timedelta(seconds=1)
AHEAD = 10_000


def send(topics: Topics, topic: str, partition: int, second: int, /, **values: Any) -> None:
    """The event of that second, at its time, with other values."""
    message = {**event(second), **values}
    topics.send(topic, [message], partition=partition, timestamp=millis(second))


def with_watermarks(deployment: Deployment, rule: PerProducer) -> None:
    deployment.ingest = replace(deployment.ingest, watermark=rule)


def test_partitions_that_are_silent_or_far_ahead_make_nothing_late(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=4)
    deployment = deploy(spark, tmp_path, topics, topic, max_messages=20)
    with_watermarks(deployment, PerProducer(idle=10 * SECOND))
    for n in range(60):
        send(topics, topic, 0, n)
        send(topics, topic, 1, n, id=AHEAD + n, at=event(AHEAD + n)["at"])
        if n < 3:
            send(topics, topic, 2, n, id=2 * AHEAD + n)
        if n == 30:
            send(topics, topic, 2, n, id=-1, at=event(5)["at"])

    deployment.run()

    ingest, lake = deployment.ingest, deployment.lake
    assert len({split.batch for split in deployment.plan()}) > 5
    assert deployment.ids(ingest.late) == [-1]
    expected = [*range(60), *range(AHEAD, AHEAD + 60), *range(2 * AHEAD, 2 * AHEAD + 3)]
    assert deployment.ids(ingest.admitted) == expected
    assert admission_watermark(lake, ingest) == FIRST + 58 * SECOND
    carried = {r["id"]: r["_watermark_after"] for r in deployment.rows(ingest.admitted)}
    assert carried[0] is None
    assert all(at <= FIRST + 58 * SECOND for at in carried.values() if at)


def test_a_partition_that_runs_ahead_is_not_read_until_the_others_have_followed(
    tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=2)
    deployment = deploy(None, tmp_path, topics, topic)
    with_watermarks(deployment, PerProducer(idle=60 * SECOND, drift=60 * SECOND))
    planner = BatchPlanner(deployment.lake, "", deployment.ingest, "run")
    now = datetime.now(UTC)

    def reached(seconds: int) -> Progress:
        newest = {0: FIRST, 1: FIRST + seconds * SECOND}
        known = {f"{topic}/{n}": Producer(now, at) for n, at in newest.items()}
        return Progress(producers=Producers(now, now, None, known))

    try:
        for n in range(3):
            send(topics, topic, 0, n)
            send(topics, topic, 1, n)
            poll = planner.poll(most=1, progress=reached(61 if n == 1 else 60))
            assert poll.aligned == ({f"{topic}/1"} if n == 1 else set())
    finally:
        planner.source.close()

    assert planned(deployment) == {
        f"{topic}/0": [(0, 1), (1, 2), (2, 3)],
        f"{topic}/1": [(0, 1), (1, 3)],
    }
