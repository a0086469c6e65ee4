"""A living stream of a topic goes on when its broker was killed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.lake.statistics import row_count
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from setup.kafka_broker import Broker
from setup.local_server import free_port
from tests.spark.helpers.background import running
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.kafka import Topics, deploy
from tests.spark.helpers.source_contract import event


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.usefixtures("broker_jars")
def test_a_broker_that_is_killed_is_waited_for_and_nothing_is_lost_or_doubled(
    spark: SparkSession, tmp_path: Path
) -> None:
    broker = Broker(tmp_path / "kafka", free_port(), dies_with_parent=True)
    broker.start()
    topics = Topics(broker.address)
    topic = topics.make(partitions=2)
    ingest = deploy(spark, tmp_path, topics, topic).ingest
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1)
    topology = Topology([ingest])

    def arrived(count: int) -> bool:
        lake = settings.lake()
        return lake.exists(ingest.admitted) and row_count(lake, ingest.admitted) >= count

    def body(stop: threading.Event) -> object:
        return run_continuous(spark, settings, topology, [ingest], run_id="live", stop=stop)

    try:
        topics.send(topic, map(event, range(50)), partition=0)
        with running(body) as thread:
            wait_until(lambda: arrived(50), reason="the first messages", alive=thread.alive)
            process = broker.process()
            assert process is not None
            process.kill()
            process.wait(30)
            broker.start()
            topics.send(topic, map(event, range(50, 100)), partition=1)
            wait_until(lambda: arrived(100), reason="those after the fall", alive=thread.alive)
    finally:
        broker.stop()
    ids = [row.id for row in delta_rows(settings.lake().path(ingest.admitted), "id")]
    assert sorted(ids) == [*range(100)]
