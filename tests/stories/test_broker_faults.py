"""A broker that is killed, halted, without room, or gone with its partitions, while a sink writes.

Whatever happens: the error names it, and in the end each row is there once. Needs no Spark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from rivermark import RivermarkError
from rivermark.ingest.source.kafka.cluster import Cluster
from rivermark.ingest.source.kafka.position import Partition, Range
from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkContext
from rivermark.sinks import KafkaSink, kafka_errors, kafka_messages, kafka_writers
from rivermark.sources import KafkaSource
from rivermark.testing import wait_until
from setup.kafka_broker import Broker
from setup.local_server import HOST, free_port
from tests.small_disk import small_disk
from tests.spark.conftest import broker_jars  # noqa: F401 - a fixture
from tests.spark.helpers.kafka import NEW, Topics, committed_messages, done
from tests.unit.sinks.conftest import context, fares

pytestmark = [pytest.mark.story, pytest.mark.usefixtures("broker_jars")]


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writers wait for brokers for five seconds."""
    for module in (kafka_errors, kafka_messages, kafka_writers):
        monkeypatch.setattr(module, "PATIENCE_SECONDS", 5.0)


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path / "lake")))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    own = Broker(tmp_path / "kafka", free_port(), dies_with_parent=True)
    own.start()
    yield own
    own.stop()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, "48m") as folder:
        yield folder


def process_of(broker: Broker) -> psutil.Process:
    """The process of a broker that runs."""
    process = broker.process()
    assert process is not None
    return process


def kill(broker: Broker) -> None:
    """Kill a broker."""
    process = process_of(broker)
    process.kill()
    process.wait(30)


def with_fault(where: SinkContext, fault: Callable[[], None]) -> SinkContext:
    """A context in which a fault happens, once, between a transaction's rows and its commit."""
    faults = [fault]

    def check() -> None:
        if faults:
            faults.pop()()

    return replace(where, origin=replace(where.origin, check=check))


def write_until_done(sink: KafkaSink, where: SinkContext, batch: int) -> None:
    """Start again until a batch is sent, as restarts of a stream do."""

    def is_sent() -> bool:
        writer = sink.open(where)
        try:
            writer.write(rows(batch), where.origin.batch(batch))
        except RivermarkError:
            return False
        finally:
            writer.close()
        return True

    wait_until(is_sent, reason=f"batch {batch} is sent")


def rows(batch: int) -> pa.Table:
    """Fifty rows of a batch."""
    return fares(*((50 * batch + n, float(n)) for n in range(50)))


def sent(topics: Topics, topic: str) -> list[int]:
    """The rides that a reader of committed messages sees, in order."""
    messages = committed_messages(topics, topic)
    return sorted(json.loads(message.value() or b"")["ride"] for message in messages)


@pytest.mark.slow
def test_a_broker_that_is_killed_within_a_transaction_has_each_row_once_when_it_is_back(
    broker: Broker, where: SinkContext
) -> None:
    topics = Topics(broker.address)
    sink = KafkaSink(topic=topics.make(partitions=2), brokers=topics.brokers)
    write_until_done(sink, where, 0)

    def restart() -> None:
        kill(broker)
        broker.start()

    with suppress(RivermarkError):
        sink.open(with_fault(where, restart)).write(rows(1), where.origin.batch(1))
    write_until_done(sink, where, 1)
    assert sent(topics, sink.topic) == [*range(100)]


def test_a_broker_that_does_not_come_back_between_rows_and_commit_is_named(
    broker: Broker, where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Topics(broker.address)
    sink = KafkaSink(topic=topics.make(partitions=2), brokers=topics.brokers)
    write_until_done(sink, where, 0)
    writer = sink.open(where)
    writer.last()
    be_impatient(monkeypatch)
    for module in (kafka_messages, kafka_writers):
        monkeypatch.setattr(module, "ABORT_SECONDS", 2.0)
    bind = kafka_errors.retried

    def gone(action: Callable[[], object]) -> object:
        kill(broker)
        return bind(action)

    # Around what binds the rows to their batch, when all of them are sent.
    monkeypatch.setattr(kafka_writers, "retried", gone)
    refused = f"at Kafka topic '{sink.topic}' of {broker.address}: .*within 5 s"
    with pytest.raises(RivermarkError, match=refused):
        writer.write(rows(1), where.origin.batch(1))
    monkeypatch.undo()
    broker.start()
    write_until_done(sink, where, 1)
    assert sent(topics, sink.topic) == [*range(100)]


def test_a_broker_that_is_halted_for_seconds_is_waited_for(
    broker: Broker, where: SinkContext
) -> None:
    topics = Topics(broker.address)
    sink = KafkaSink(topic=topics.make(partitions=2), brokers=topics.brokers)
    process = process_of(broker)

    def halt() -> None:
        process.suspend()
        threading.Timer(4, process.resume).start()

    writer = sink.open(with_fault(where, halt))
    writer.write(rows(0), where.origin.batch(0))
    writer.close()
    assert sent(topics, sink.topic) == [*range(50)]


@pytest.mark.slow
def test_a_broker_whose_disk_is_full_is_named_and_goes_on_when_there_is_room(
    disk: Path, where: SinkContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(disk / "kafka", free_port(), dies_with_parent=True)
    broker.start()
    topics = Topics(broker.address)
    sink = KafkaSink(topic=topics.make(), brokers=topics.brokers)
    writer = sink.open(where)
    writer.write(rows(0), where.origin.batch(0))
    filler = disk / "filler"
    be_impatient(monkeypatch)

    written = 1

    def fill() -> None:
        with filler.open("wb") as file:
            while True:
                file.write(bytes(1 << 16))
                file.flush()

    def write() -> None:
        nonlocal written
        while True:
            writer.write(rows(written), where.origin.batch(written))
            written += 1

    with pytest.raises(OSError, match="No space left"):
        fill()
    with pytest.raises(RivermarkError, match=rf"stream 'test/fares' cannot .*{broker.address}"):
        write()
    filler.unlink()
    broker.stop()
    broker.start()
    try:
        write_until_done(sink, where, written)
        assert sent(topics, sink.topic) == [*range(50 * (written + 1))]
    finally:
        broker.stop()


@dataclass(frozen=True)
class SecondBroker(Broker):
    """A broker without a controller, in the cluster of another one."""

    first: Broker | None = None

    def _prepare(self) -> None:
        assert self.first is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = (self.first.folder / "server.properties").read_text().splitlines()
        said = dict(line.split("=", 1) for line in lines)
        said |= {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"BROKER://{HOST}:{self.port}",
            "advertised.listeners": f"BROKER://{HOST}:{self.port}",
            "log.dirs": f"{self.folder}/data",
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in said.items()))
        self.log.write_text("")
        if not (self.folder / "data" / "meta.properties").exists():
            meta = (self.first.folder / "data" / "meta.properties").read_text()
            cluster = dict(x.split("=", 1) for x in meta.splitlines() if "=" in x)["cluster.id"]
            config = ("--cluster-id", cluster, "--config", str(self._properties))
            self._run(self._program("kafka.tools.StorageTool", "format", *config))


@pytest.mark.slow
def test_a_partition_without_a_leader_is_waited_for_and_named(
    broker: Broker, where: SinkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = Topics(broker.address)
    # The topics of transactions and groups are made with the first use, and are to stay.
    write_until_done(KafkaSink(topic=topics.make(), brokers=topics.brokers), where, 0)
    second = SecondBroker(tmp_path / "second", free_port(), dies_with_parent=True, first=broker)
    second.start()
    assignment = [[1], [2]]
    new = NEW.NewTopic("two", 2, replica_assignment=assignment)
    wait_until(lambda: len(topics.admin.list_topics(timeout=10).brokers) == 2, reason="both")
    done(topics.admin.create_topics([new]))
    sink = KafkaSink(topic="two", brokers=topics.brokers)
    writer = sink.open(where)
    writer.write(rows(0), where.origin.batch(0))
    source = KafkaSource(brokers=topics.brokers, topics="two").open("")
    assert {s.name.split("/")[1] for s in source.discover().ready} == {"0", "1"}

    kill(second)
    cluster = Cluster({"bootstrap.servers": topics.brokers}, "read_committed")
    wait_until(lambda: not leads(topics, 1), reason="partition 1 has no leader")
    # A client that knew the broker may first wait for an answer of it.
    assert len(source.discover().waiting) == 1
    source.close()
    source = KafkaSource(brokers=topics.brokers, topics="two").open("")
    [waiting] = source.discover().waiting
    assert waiting.reason.startswith("partition 1 of topic 'two' has no leader: ")
    be_impatient(monkeypatch)
    with pytest.raises(RivermarkError, match=r"at Kafka topic 'two'.*within 5 s"):
        writer.write(rows(1), where.origin.batch(1))
    monkeypatch.undo()

    second.start()
    wait_until(lambda: leads(topics, 1), reason="partition 1 has a leader")
    write_until_done(sink, where, 1)
    assert sent(topics, "two") == [*range(100)]
    ranges = [Range.of_split(split) for split in source.discover().ready]
    ends = cluster.ends([Partition("two", 0), Partition("two", 1)])
    assert {r.of: r.end for r in ranges} == {p: e.behind for p, e in ends.items()}
    source.close()
    second.stop()


def leads(topics: Topics, partition: int) -> bool:
    """Whether a partition of topic `two` has a leader."""
    known = topics.admin.list_topics("two", timeout=10).topics["two"].partitions
    return bool(known[partition].leader != -1)
