"""What is planned of topics of a real broker, without Spark."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermark import RivermarkError
from rivermark.ingest.plan import BatchPlanner, open_source
from rivermark.ingest.source.kafka import cluster
from rivermark.ingest.source.kafka.position import Range
from rivermark.monitor.lag import keeps_up, lag_of
from rivermark.monitor.status import status_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from rivermark.sources import ConsumerGroup
from rivermark.testing import wait_until
from tests.spark.helpers.kafka import (
    Topics,
    committed_messages,
    deploy,
    millis,
    poll,
    source_of,
)
from tests.spark.helpers.source_contract import event


def test_the_first_start_begins_where_it_is_declared_and_later_ones_behind_the_plan(
    tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=2)
    for n in range(10):
        topics.send(topic, [event(n)], partition=0, timestamp=millis(n))
    topics.send(topic, [event(0)], partition=1, timestamp=millis(0))
    starts: dict[str, tuple[Any, list[tuple[int, int]]]] = {
        "earliest": ("earliest", [(0, 10), (0, 1)]),
        "latest": ("latest", [(10, 10), (1, 1)]),
        "moment": (event(4)["at"], [(4, 10), (1, 1)]),
        # As a number it is what brokers take for the latest offset.
        "before 1970": (datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC), [(0, 10), (0, 1)]),
        "offsets": ({topic: {0: 7}}, [(7, 10), (0, 1)]),
        "group": (ConsumerGroup(topic), [(6, 10), (0, 1)]),
    }
    topics.commit(topic, group=topic, offset=6)
    deployments = {}
    for name, (start, ranges) in starts.items():
        deployments[name] = deploy(None, tmp_path / name, topics, topic, start=start)
        plan = poll(deployments[name])
        assert plan == {f"{topic}/{n}": [own] for n, own in enumerate(ranges)}, name
    topics.send(topic, [event(10)], partition=1, timestamp=millis(1))
    for name, (_, [first, second]) in starts.items():
        plan = poll(deployments[name])
        assert plan == {f"{topic}/0": [first], f"{topic}/1": [second, (1, 2)]}, name

    with pytest.raises(RivermarkError, match=r"offset 11 of partition 0 .*: it holds 0 to 9"):
        poll(deploy(None, tmp_path / "far", topics, topic, start={topic: {0: 11}}))
    with pytest.raises(RivermarkError, match="'none-such', which has committed no offset of"):
        poll(deploy(None, tmp_path / "none", topics, topic, start=ConsumerGroup("none-such")))


def test_messages_that_were_read_before_they_were_committed_are_not_lost_behind_a_transaction(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic, isolation="read_uncommitted")
    producer = Producer({"bootstrap.servers": topics.brokers, "transactional.id": topic})
    producer.init_transactions(30)
    topics.send(topic, [event(0)])
    producer.begin_transaction()
    producer.produce(topic, json.dumps(event(1), default=str))
    producer.flush()
    topics.send(topic, [event(2)])
    assert poll(deployment) == {f"{topic}/0": [(0, 3)]}

    committed = replace(source_of(deployment), isolation="read_committed")
    deployment.ingest = replace(deployment.ingest, source=committed)
    assert poll(deployment) == {f"{topic}/0": [(0, 3)]}
    with pytest.raises(RivermarkError, match=r"offsets up to 2 were planned, .* follows 0"):
        deployment.run()
    producer.abort_transaction(30)
    topics.settle(topic)
    deployment.run()
    assert deployment.ids(deployment.ingest.admitted) == [0, 2]


def test_a_round_takes_all_partitions_as_far_as_the_same_timestamp(
    tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=2)
    for n in range(40):
        topics.send(topic, [event(n)], partition=0, timestamp=millis(n))
    for n in range(20, 40):
        topics.send(topic, [event(n + 100)], partition=1, timestamp=millis(n))
    deployment = deploy(None, tmp_path, topics, topic, max_messages=20)
    poll(deployment)
    rounds: dict[int, dict[int, Range]] = {}
    for split in deployment.plan():
        read = Range.of_split(split)
        assert read.round == split.batch
        rounds.setdefault(read.round, {})[read.partition] = read
    sizes = [sum(r.end - r.start for r in own.values()) for own in rounds.values()]
    assert sum(sizes) == 60
    assert max(sizes) <= 20
    # Partition 1 waits while partition 0 comes to where it begins, and then keeps in step.
    for own in rounds.values():
        if {0, 1} <= own.keys() and own[1].end:
            assert own[1].end + 20 == own[0].end


@pytest.mark.parametrize(("letters", "rounds"), [(0, [1]), (900, range(3, 7))])
def test_a_round_closes_by_the_bytes_of_its_messages(
    tmp_path: Path, topics: Topics, letters: int, rounds: Sequence[int]
) -> None:
    topic = topics.make()
    for n in range(40):
        topics.send(topic, [event(n) | {"note": "x" * letters}], timestamp=millis(n))
    deployment = deploy(None, tmp_path, topics, topic)
    planner = BatchPlanner(
        deployment.lake, "", deployment.ingest, "run", batch_bytes=16 * (1 << 10)
    )
    planner.poll()
    planner.source.close()
    plan = deployment.plan()
    assert sum(Range.of_split(s).end - Range.of_split(s).start for s in plan) == 40
    assert len(plan) in rounds
    assert all(split.size <= 16 * (1 << 10) for split in plan)


@pytest.mark.long
def test_topics_are_found_by_a_pattern_and_one_that_is_not_there_is_waited_for(
    tmp_path: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = topics.make()
    deployment = deploy(None, tmp_path, topics, pattern=rf"{prefix}\..*")
    reader = open_source(deployment.lake, "", deployment.ingest)
    assert [w.reason for w in reader.discover().waiting] == ["no topic is named so yet"]
    for name, n in (("a", 0), ("b", 1)):
        topics.make(f"{prefix}.{name}")
        topics.send(f"{prefix}.{name}", [event(n)])
        assert f"{prefix}.{name}/0" in poll(deployment)
    named = deploy(None, tmp_path / "named", topics, f"{prefix}.none")
    reader = open_source(named.lake, "", named.ingest)
    assert [w.name for w in reader.discover().waiting] == [f"{prefix}.none"]
    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.0)
    silent = replace(source_of(named), brokers="127.0.0.1:1")
    [waiting] = silent.open("").discover().waiting
    assert "no Kafka broker answers at 127.0.0.1:1" in waiting.reason


def test_what_is_unread_is_shown_and_checked_by_partition(
    tmp_path: Path, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make(partitions=3)
    for n in range(10):
        topics.send(topic, [event(n)], partition=0, timestamp=millis(n))
    deployment, settings = deploy(None, tmp_path, topics, topic), Settings(home=tmp_path)
    ingest, now = deployment.ingest, event(90)["at"]
    desired = DesiredStore(settings.state)
    desired.set(ingest.group, "run", by="a test", reason="begin")
    # What is planned is unread until its rows are in the tables.
    for planned_already in (False, True):
        if planned_already:
            poll(deployment)
        lag = lag_of(settings, ingest)
        unread = {part.name: part.records for part in lag.parts}
        assert unread == {f"{topic}/0": 10, f"{topic}/1": 0, f"{topic}/2": 0}
        assert (lag.records, lag.oldest) == (10, event(0)["at"])
    topics.send(topic, [event(20)], partition=2, timestamp=millis(20))

    [status] = status_of(settings, [ingest], now)
    assert status.lag is not None
    assert status.lag.sentence(now) == (
        f"11 records unread, the oldest for 1.5 min ({topic}/0 10, {topic}/2 1)"
    )
    assert keeps_up(settings, ingest, now).passed
    late = keeps_up(settings, ingest, datetime.now(UTC))
    assert not late.passed
    assert late.numbers["unread"] == 11
    assert late.numbers[f"unread {topic}/0"] == 10
    desired.set(ingest.group, "paused", by="a test", reason="maintenance")
    assert keeps_up(settings, ingest, datetime.now(UTC)).passed

    monkeypatch.setattr(cluster, "PATIENCE_SECONDS", 1.0)
    silent = replace(ingest, source=replace(source_of(deployment), brokers="127.0.0.1:1"))
    [status] = status_of(settings, [silent], now)
    assert status.lag is not None
    assert "no Kafka broker answers at 127.0.0.1:1" in status.lag.sentence(now)
    assert not keeps_up(settings, silent, now).passed


@pytest.mark.long
def test_a_planned_range_is_read_without_what_compaction_has_taken_meanwhile(
    tmp_path: Path, topics: Topics
) -> None:
    soon = {"segment.ms": "50", "max.compaction.lag.ms": "100", "delete.retention.ms": "0"}
    topic = topics.make("", 1, **{"cleanup.policy": "compact", **soon})

    def send(first: int, last: int, **options: Any) -> None:
        # Only a segment that is closed is compacted, which the next message behind its time does.
        for number in range(first, last):
            topics.send(topic, [event(number)], **options)
            time.sleep(0.06)

    send(0, 12, key="a")
    send(12, 24, key="b")
    deployment = deploy(None, tmp_path, topics, topic, max_messages=10)
    assert sum(end - start for start, end in poll(deployment)[f"{topic}/0"]) == 24
    topics.send(topic, [None], key="a")

    def offsets() -> list[int | None]:
        send(99, 100, key="c")
        return [m.offset() for m in committed_messages(topics, topic) if (m.offset() or 0) < 24]

    wait_until(lambda: offsets() == [23], reason="the topic is compacted")
    source = open_source(deployment.lake, "", deployment.ingest)
    rows = []
    for split in deployment.plan():
        for piece in source.pieces(cast(SparkSession, None), [split], 1 << 20):
            for records in source.read(piece):
                rows += records.rows["_row"].to_pylist()
    source.close()
    assert rows == [23]


def test_m010_what_waits_behind_an_open_transaction_is_said(tmp_path: Path, topics: Topics) -> None:
    topic = topics.make(partitions=1)
    for n in range(3):
        topics.send(topic, [event(n)], partition=0, timestamp=millis(n))
    deployment = deploy(None, tmp_path, topics, topic)
    assert poll(deployment) == {f"{topic}/0": [(0, 3)]}
    hanging = Producer({"bootstrap.servers": topics.brokers, "transactional.id": topic})
    hanging.init_transactions(30)
    hanging.begin_transaction()
    hanging.produce(topic, json.dumps(event(3), default=str).encode(), partition=0)
    hanging.flush(30)
    for n in range(4, 24):
        topics.send(topic, [event(n)], partition=0, timestamp=millis(n))

    settings, ingest = Settings(home=tmp_path), deployment.ingest
    lag = lag_of(settings, ingest)
    [part] = lag.parts
    assert (part.held, part.held_at) == (21, 3)
    assert part.records >= 21
    said = lag.sentence(datetime.now(UTC))
    assert f"21 of {topic}/0 (offset 3) wait behind a transaction that is open" in said
    hanging.abort_transaction(30)
    wait_until(lambda: lag_of(settings, ingest).parts[0].held == 0, 30)
