"""Topics of a real broker as a source."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from datetime import UTC
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from rivermark import Contract, Field
from rivermark.ingest.plan import BatchPlanner, open_source, parts_of
from rivermark.ingest.source.kafka.position import Range
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.errors import RecordsLost
from rivermark.sources import Avro, KafkaSource, Source
from tests.spark.helpers.kafka import Topics, deploy, millis, poll, source_of
from tests.spark.helpers.source_contract import EVENT, FIRST, Deployment, SourceContract, event

pytestmark = pytest.mark.spark


def accept(deployment: Deployment) -> list[str]:
    """Accept what is lost; returns the names of the gaps."""
    planner = BatchPlanner(deployment.lake, "", deployment.ingest, "run")
    lost = planner.accept_loss()
    planner.source.close()
    return [split.name for split in lost]


class TestKafka(SourceContract):
    """Three partitions, filled in turn."""

    @pytest.fixture(autouse=True)
    def broker(self, topics: Topics) -> None:
        self.topics = topics
        self.topic = topics.make(partitions=3)

    def source(self, root: Path) -> Source:
        return KafkaSource(brokers=self.topics.brokers, topics=self.topic)

    def produce(self, root: Path, numbers: range) -> None:
        for n in numbers:
            self.topics.send(self.topic, [event(n)], partition=n % 3)

    def producers(self, source: Source) -> set[str]:
        return {f"{self.topic}/{n}" for n in range(3)}


def test_b062_offsets_that_retention_deletes_unread_stop_the_stream_until_that_is_accepted(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic)
    topics.send(topic, map(event, range(100)))
    deployment.run()
    topics.send(topic, map(event, range(100, 300)))
    topics.cut(topic, 0, before=200)

    gone = (
        rf"partition 0 of topic '{topic}': offsets 100 to 199 \(100 of them\) are gone.*"
        "accept-loss test/messages.*reset test/messages --with-tables"
    )
    for _ in range(2):
        with pytest.raises(RecordsLost, match=gone):
            deployment.run()
    assert accept(deployment) == [f"{topic}/0/000000000100-000000000200/lost"]
    assert accept(deployment) == []
    deployment.run()

    ids = [*range(100), *range(200, 300)]
    assert deployment.ids(deployment.ingest.admitted) == ids
    assert sorted(row["_row"] for row in deployment.rows(deployment.ingest.raw)) == ids
    [gap] = deployment.rows(deployment.ingest.quarantine)
    assert (gap["_file"], gap["reasons"]) == (
        f"{topic}/0/000000000100-000000000200/lost",
        ["offsets_deleted"],
    )

    # The same of what was planned, and not read yet.
    topics.send(topic, map(event, range(300, 310)))
    poll(deployment)
    topics.cut(topic, 0, before=305)
    with pytest.raises(RecordsLost, match=r"offsets 300 to 304 \(5 of them\)"):
        deployment.run()
    assert accept(deployment) == [f"{topic}/0/000000000300-000000000305/lost"]
    deployment.run()
    assert deployment.ids(deployment.ingest.admitted) == [*ids, *range(305, 310)]


def test_a_topic_that_is_deleted_or_made_again_stops_the_stream_until_that_is_accepted(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic)
    topics.send(topic, map(event, range(3)))
    deployment.run()
    topics.delete(topic)
    with pytest.raises(RecordsLost, match="what followed offset 2 is gone: the topic was deleted"):
        deployment.run()
    topics.make(topic)
    # As many as were read, and more: by its offsets the topic looks like the one before.
    topics.send(topic, map(event, range(3, 8)))
    with pytest.raises(RecordsLost, match="deleted and made again"):
        deployment.run()

    assert accept(deployment) == [f"{topic}/0/000000000003-000000000003/lost"]
    deployment.run()
    assert deployment.ids(deployment.ingest.admitted) == [*range(8)]
    assert {row["_file"] for row in deployment.rows(deployment.ingest.raw)} == {
        f"{topic}/0/000000000000-000000000003",
        f"{topic}~1/0/000000000000-000000000005",
    }


def test_b064_a_new_partition_is_read_from_its_first_message_and_a_silent_one_is_listed(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=2)
    deployment = deploy(spark, tmp_path, topics, topic, start="latest")
    assert poll(deployment) == {f"{topic}/0": [(0, 0)], f"{topic}/1": [(0, 0)]}
    topics.send(topic, map(event, range(4)), partition=0, timestamp=millis(0))
    topics.send(topic, map(event, range(4, 6)), partition=1, timestamp=millis(5))
    deployment.run()
    topics.grow(topic, 3)
    topics.send(topic, map(event, range(6, 16)), partition=2, timestamp=millis(9))
    topics.send(topic, [event(16)], partition=0, timestamp=millis(16))

    backlog = open_source(deployment.lake, "", deployment.ingest).backlog()
    unread = parts_of(deployment.lake, "", deployment.ingest)
    parts = [(part.name, part.records, part.newest, part.oldest) for part in unread]
    assert parts == [
        (f"{topic}/0", 1, event(16)["at"], event(16)["at"]),
        (f"{topic}/1", 0, event(5)["at"], None),
        (f"{topic}/2", 10, event(9)["at"], event(9)["at"]),
    ]
    assert (backlog.splits, backlog.oldest) == (2, event(9)["at"])
    deployment.run()

    # Partition 1 was silent meanwhile; rows of one partition are not late because of the others'.
    assert deployment.ids(deployment.ingest.admitted) == [*range(17)]
    assert deployment.rows(deployment.ingest.late) == []
    assert open_source(deployment.lake, "", deployment.ingest).backlog().splits == 0
    unread = parts_of(deployment.lake, "", deployment.ingest)
    assert [(part.records, part.oldest) for part in unread] == [(0, None)] * 3


@pytest.mark.parametrize(
    "driver_bytes",
    [
        pytest.param(None, id="in the driver"),
        pytest.param(0, id="on Spark", marks=pytest.mark.long),
    ],
)
def test_b090_b045_tombstones_are_counted_and_what_cannot_be_read_is_kept_with_its_place(
    spark: SparkSession, tmp_path: Path, topics: Topics, driver_bytes: int | None
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic)
    bytes_of_no_text = b'{"id":\xff\xfe}'
    topics.send(topic, [event(0)], key="7", headers=[("trace", b"a1")], timestamp=millis(0))
    topics.send(topic, [None], key="7")
    topics.send(topic, [event(1)])
    cut = json.dumps(event(2), default=str).encode()[:20]
    topics.send(topic, [cut, b"", b"hello", b"[1]", b'"id":7}', bytes_of_no_text, b"{}"], key="k")
    topics.send(topic, [b' {"id": 3, "at": "2024-03-01T10:00:03Z"}\n'], key=b"\xff")
    deployment.run(driver_bytes)

    rows = sorted(deployment.rows(deployment.ingest.admitted), key=lambda row: row["id"])
    assert [(r["id"], r["place"], r["key"], r["trace"]) for r in rows] == [
        (0, 0, "7", "a1"),
        (1, 2, None, None),
        (3, 10, None, None),
    ]
    first, *_, last = sorted(deployment.rows(deployment.ingest.raw), key=lambda row: row["_row"])
    raw = json.loads(first["payload"])
    assert raw == {
        "_topic": topic,
        "_partition": 0,
        "_offset": 0,
        "_timestamp": "2024-03-01T10:00:00.000Z",
        "_key": "7",
        "_header.trace": "a1",
        **json.loads(json.dumps(event(0), default=str)),
    }
    assert json.loads(last["payload"])["_key_bytes"] == "/w=="
    [outcome] = deployment.rows(INGEST_FILES)
    assert (outcome["rows"], outcome["admitted"], outcome["quarantined"]) == (10, 3, 7)
    assert outcome["skipped"] == 1

    bad = {row["_row"]: row for row in deployment.rows(deployment.ingest.quarantine)}
    assert {place: row["reasons"] for place, row in bad.items()} == {
        **{place: ["unparsable_json"] for place in (3, 4, 5, 6, 7)},
        8: ["unparsable_json", "undecodable_text"],
        9: ["missing_id", "missing_at"],
    }
    assert bad[3]["payload"].endswith(cut[1:].decode())
    assert bad[5]["payload"].endswith('"_key":"k"} hello')
    kept, _ = json.JSONDecoder().raw_decode(bad[8]["payload"])
    assert base64.b64decode(kept["_bytes"]) == bytes_of_no_text
    assert (kept["_topic"], kept["_partition"], kept["_offset"]) == (topic, 0, 8)
    assert {row["_file"] for row in bad.values()} == {f"{topic}/0/000000000000-000000000011"}


def test_only_messages_of_committed_transactions_are_read_once_they_are_committed(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic)
    producer = Producer({"bootstrap.servers": topics.brokers, "transactional.id": topic})
    producer.init_transactions(30)

    def send(number: int) -> None:
        producer.produce(topic, json.dumps(event(number), default=str))
        producer.flush()

    producer.begin_transaction()
    send(0)
    producer.abort_transaction(30)
    producer.begin_transaction()
    send(1)
    deployment.run()
    assert deployment.ids(deployment.ingest.admitted) == []
    send(2)
    producer.commit_transaction(30)
    topics.settle(topic)
    # The last offsets are marks of transactions, behind which nothing comes.
    deployment.run()
    assert deployment.ids(deployment.ingest.admitted) == [1, 2]
    everything = replace(source_of(deployment), isolation="read_uncommitted")
    [read] = everything.open("").discover().ready
    assert Range.of_split(read).end == 5


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [("text", b"any line", "any line"), ("bytes", b"\x00\xff", "AP8=")],
)
def test_values_that_are_no_json_come_in_a_column(
    spark: SparkSession, tmp_path: Path, topics: Topics, kind: str, value: bytes, expected: str
) -> None:
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic, format=kind, tombstones="rows")
    topics.send(topic, [value, None], timestamp=millis(0))
    fields = (
        Field("at", EVENT.fields[1].type, ("_timestamp",), required=True),
        Field(kind, StringType()),
        Field("gone", StringType(), ("_tombstone",)),
    )
    contract = Contract(fields=fields, event_time="at", max_ahead=EVENT.max_ahead)
    deployment.ingest = replace(deployment.ingest, contract=contract)
    deployment.run()
    rows = deployment.rows(deployment.ingest.admitted)
    assert [(row["at"].astimezone(UTC), row[kind], row["gone"]) for row in rows] == [
        (FIRST, expected, None),
        (FIRST, None, "true"),
    ]


def test_avro_records_are_typed_and_those_that_cannot_be_read_keep_their_bytes_and_place(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    schema = {
        "type": "record",
        "name": "Event",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
    (tmp_path / "7.avsc").write_text(json.dumps(schema))

    def sent(number: int) -> bytes:
        content = io.BytesIO(b"\0\0\0\0\7")
        content.seek(5)
        fastavro.schemaless_writer(content, fastavro.parse_schema(schema), event(number))
        return content.getvalue()

    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic, format=Avro(registry=str(tmp_path)))
    topics.send(topic, [sent(0), None, b"\0\0\0\0\7\xff", event(1), sent(2)], key="k")
    deployment.run()

    rows = sorted(deployment.rows(deployment.ingest.admitted), key=lambda row: row["id"])
    assert [(r["id"], r["at"], r["place"], r["key"]) for r in rows] == [
        (n, event(n)["at"], place, "k") for n, place in ((0, 0), (2, 4))
    ]
    bad = {row["_row"]: row["payload"] for row in deployment.rows(deployment.ingest.quarantine)}
    assert bad.keys() == {2, 3}
    known, end = json.JSONDecoder().raw_decode(bad[2])
    assert (known["_topic"], known["_partition"], known["_offset"]) == (topic, 0, 2)
    assert base64.b64decode(known["_bytes"]) == b"\0\0\0\0\7\xff"
    assert bad[2][end:].startswith(" no Avro record: ")
    assert bad[3].endswith(" it does not begin with the header of a schema registry")
    [outcome] = deployment.rows(INGEST_FILES)
    assert (outcome["admitted"], outcome["quarantined"], outcome["skipped"]) == (2, 2, 1)


def test_m011_m049_m051_keys_and_values_are_what_their_formats_say(
    spark: SparkSession, tmp_path: Path, topics: Topics
) -> None:
    plain = {"name": "at", "type": "long"}
    kind = {"type": "long", "logicalType": "timestamp-millis"}
    fields = [{"name": "id", "type": "long"}]
    for name, at in (("7", plain), ("read", {"name": "at", "type": kind})):
        schema = {"type": "record", "name": "Event", "fields": [*fields, at]}
        (tmp_path / f"{name}.avsc").write_text(json.dumps(schema))
    written = fastavro.parse_schema(json.loads((tmp_path / "7.avsc").read_text()))
    value = Avro(registry=str(tmp_path), schema=str(tmp_path / "read.avsc"), id_bytes=8)
    topic = topics.make()
    deployment = deploy(spark, tmp_path, topics, topic, format=value, key_format="long")
    keys = [1, 42, 127, 128, 255, 300, 70_000]
    for number, key in enumerate(keys):
        content = io.BytesIO()
        fastavro.schemaless_writer(content, written, {"id": number, "at": millis(number)})
        sent = b"\0" + (7).to_bytes(8, "big") + content.getvalue()
        topics.send(topic, [sent], key=key.to_bytes(8, "big"))
    topics.send(topic, [sent], key=b"text")
    deployment.run()

    rows = sorted(deployment.rows(deployment.ingest.admitted), key=lambda row: row["id"])
    assert [(row["id"], row["at"], row["key"]) for row in rows] == [
        (number, event(number)["at"], str(key)) for number, key in enumerate(keys)
    ]
    [bad] = deployment.rows(deployment.ingest.quarantine)
    known, end = json.JSONDecoder().raw_decode(bad["payload"])
    assert base64.b64decode(known["_key_bytes"]) == b"text"
    assert bad["payload"][end:].startswith(" its key: 4 bytes are no long")
