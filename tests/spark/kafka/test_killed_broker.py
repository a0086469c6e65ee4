"""A living stream of a topic whose broker is killed, then halted; at last its topic is deleted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.lake.snapshot import row_count
from rivermark.model.errors import StreamFailed
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.heartbeat import WAITING, HeartbeatStore
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
def test_a_broker_is_waited_for_and_nothing_is_lost_or_doubled_until_its_topic_is_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    broker = Broker(tmp_path / "kafka", free_port(), dies_with_parent=True)
    broker.start()
    topics = Topics(broker.address)
    topic = topics.make(partitions=2)
    ingest = deploy(spark, tmp_path, topics, topic).ingest
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1)
    topology = Topology([ingest])
    heartbeats = HeartbeatStore(settings.state)

    def arrived(count: int) -> bool:
        lake = settings.lake()
        return lake.exists(ingest.admitted) and row_count(lake, ingest.admitted) >= count

    def says_that_it_waits() -> bool:
        beat = heartbeats.get(ingest.name)
        return beat is not None and beat.state == "running" and beat.numbers[WAITING] > 0

    def body(stop: threading.Event) -> object:
        return run_continuous(spark, settings, topology, [ingest], run_id="live", stop=stop)

    def kill_halt_and_delete() -> None:
        with running(body) as live:
            wait_until(lambda: arrived(50), reason="the first messages", alive=live.alive)
            process = broker.process()
            assert process is not None
            process.kill()
            process.wait(30)
            broker.start()
            topics.send(topic, map(event, range(50, 100)), partition=1)
            wait_until(lambda: arrived(100), reason="those after the fall", alive=live.alive)
            process = broker.process()
            assert process is not None
            process.suspend()
            wait_until(says_that_it_waits, reason="the broker is missed", alive=live.alive)
            process.resume()
            topics.send(topic, map(event, range(100, 150)), partition=0)
            wait_until(lambda: arrived(150), reason="those after the halt", alive=live.alive)
            topics.delete(topic)
            wait_until(lambda: not live.alive(), reason="the run ends")

    gone = rf"topic '{topic}': what followed offset \d+ is gone: the topic was deleted.*accept-loss"
    try:
        topics.send(topic, map(event, range(50)), partition=0)
        with pytest.raises(StreamFailed, match=gone):
            kill_halt_and_delete()
    finally:
        broker.stop()
    ids = [row.id for row in delta_rows(settings.lake().path(ingest.admitted), "id")]
    assert sorted(ids) == [*range(150)]
