"""What a message becomes: what is known of it, then its own members; without a broker."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from confluent_kafka import Message

from rivermark.ingest.source.kafka.formats import KeyFormat
from rivermark.ingest.source.kafka.messages import payload_of
from rivermark.ingest.source.kafka.reader import moment_of
from rivermark.model.time import EPOCH
from rivermark.sources import Avro

KNOWN = '"_topic":"rides","_partition":3,"_offset":77'
AT = ',"_timestamp":"2024-03-01T10:00:00.005Z"'
LONG_AGO = -62_135_596_800_000


@dataclass
class Sent:
    """A message as the client returns it."""

    content: bytes | None
    sent_at: tuple[int, int] = (1, 1_709_287_200_005)
    named: bytes | None = None
    headed: Any = None

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return self.named

    def headers(self) -> Any:
        if isinstance(self.headed, Exception):
            raise self.headed
        return self.headed

    def timestamp(self) -> tuple[int, int]:
        return self.sent_at

    def topic(self) -> str:
        return "rides"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 77


def payload(sent: Sent, tombstones: str = "skip") -> str:
    return payload_of(cast(Message, sent), "json", tombstones)[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"id":1}', '{"id":1,KNOWN}'),
        (b' {"id":1}', '{"id":1,KNOWN}'),
        (b'{ "id":1} \r\n', '{ "id":1,KNOWN}'),
        (b"\xef\xbb\xbf{}", "{KNOWN}"),
        (b"{ }", "{KNOWN}"),
        (b'{"id"', '{KNOWN,"id"'),
        (b"[1]", "{KNOWN} [1]"),
        (b"", '{KNOWN} ""'),
        (b'{"id":"\xff"}', '{KNOWN,"_bytes":"eyJpZCI6Iv8ifQ=="} {"id":"\ufffd"}'),
    ],
)
def test_what_is_known_follows_the_members_and_precedes_what_is_no_object(
    value: bytes, expected: str
) -> None:
    assert payload(Sent(value)) == expected.replace("KNOWN", KNOWN + AT)
    assert payload(Sent(value, (0, -1))) == expected.replace("KNOWN", KNOWN)


def test_a_tombstone_is_nothing_or_a_record_that_says_so() -> None:
    assert payload(Sent(None)) == ""
    assert json.loads(payload(Sent(None), "rows"))["_tombstone"] is True


WELL_FORMED = [
    *('{"_topic":"x","_offset":-1,"id":1}', '{"\\u005fkey":"x"}', '{"_timestamp":null}'),
    *('{"a":{"_topic":"x"}}', '{"":0}', '{"a":"}"}', '{"a":9007199254740993,"b":1e400}'),
    *('{"a":"\\ud800"}', '{"a":[{},[]]}', '{"_header.trace":"x","_header.other":"y"}'),
]


@pytest.mark.parametrize("value", WELL_FORMED)
def test_what_the_broker_says_counts_and_all_other_members_stay(value: str) -> None:
    """A message that calls its own members `_topic` or `_key` would else name its own place."""
    sent = Sent(value.encode(), named=b"k", headed=[("trace", b"a"), ("trace", b"b"), ("n", None)])
    said = {
        "_topic": "rides",
        "_partition": 3,
        "_offset": 77,
        "_timestamp": "2024-03-01T10:00:00.005Z",
        "_key": "k",
        "_header.trace": "b",
        "_header.n": None,
    }
    assert json.loads(payload(sent)) == json.loads(value) | said


MALFORMED = [
    *('{"a":1}}', '{"a":1}{"b":2}', '{"a":1} x}', '{"a":1,}', "{,}", '{"}', '{"a":"}', "{{}"),
    *('{"a":{"b":1}', '{"a":[1}', '{"a":[}', '{"a"}', '{"a":}', '{"a":"\\"}', '{"a":"b","c":"}'),
    *('{"a":1 "b":2}', '{"a":tru}', "{1:2}", '{"a":1\x00}', '{"a":"\n"}'),
]


@pytest.mark.parametrize("value", MALFORMED)
def test_no_value_becomes_an_object_by_what_is_put_behind_it(value: str) -> None:
    for text in (value, payload(Sent(value.encode()))):
        with pytest.raises(ValueError, match=r"Expecting|delimiter|Extra data|control|Unterm|Inva"):
            json.loads(text)


@pytest.mark.parametrize(
    ("millis", "said"),
    [
        (-5, "1969-12-31T23:59:59.995Z"),
        (LONG_AGO, "0001-01-01T00:00:00.000Z"),
        (LONG_AGO - 1, "-62135596800001 ms"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (1_709_287_200_005_000, "1709287200005000 ms"),
        (2**63 - 1, "9223372036854775807 ms"),
        (-(2**62), "-4611686018427387904 ms"),
    ],
)
def test_a_timestamp_that_is_no_time_of_a_calendar_is_kept_as_a_number(
    millis: int, said: str
) -> None:
    assert json.loads(payload(Sent(b"{}", (1, millis))))["_timestamp"] == said
    latest = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
    assert moment_of(millis) == (latest if millis > 2**40 else EPOCH)


def test_keys_and_headers_of_any_bytes_are_kept() -> None:
    key = bytes(range(256)) * 4_000
    headers = [("n", None), ('quote"\n', b"\xff"), ("empty", b""), ("text", "ü\x00".encode())]
    record = json.loads(payload(Sent(b"{}", named=key, headed=headers)))
    assert b64decode(record["_key_bytes"]) == key
    assert record["_header.n"] is None
    assert b64decode(record['_header.quote"\n_bytes']) == b"\xff"
    assert (record["_header.empty"], record["_header.text"]) == ("", "ü\x00")
    assert "_key" not in record
    assert json.loads(payload(Sent(b"{}", named=b"")))["_key"] == ""


def test_a_header_whose_name_is_no_text_is_quarantined_with_the_value() -> None:
    unnamed = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
    text = payload(Sent(b'{"id":1}', headed=unnamed))
    known, end = json.JSONDecoder().raw_decode(text)
    assert b64decode(known["_bytes"]) == b'{"id":1}'
    assert text[end:] == " the name of a header is no UTF-8"


def with_key(key: bytes, kind: KeyFormat) -> Any:
    return json.loads(payload_of(cast(Message, Sent(b"{}", named=key)), "json", "skip", kind)[0])


@pytest.mark.parametrize("number", [0, 1, 42, 127, 128, 255, 300, 70_000, -1, 2**31 - 1])
def test_m011_keys_of_javas_serializers_are_numbers_of_their_format(number: int) -> None:
    assert with_key(number.to_bytes(4, "big", signed=True), "int")["_key"] == number
    key = number.to_bytes(8, "big", signed=True)
    assert with_key(key, "long")["_key"] == number
    for kind in ("bytes", "text") if number >= 0 else ("bytes",):
        record = with_key(key, cast(KeyFormat, kind))
        assert (b64decode(record["_key_bytes"]), "_key" in record) == (key, False)


def test_m011_a_key_is_a_uuid_or_a_record_by_its_format(tmp_path: Path) -> None:
    own = UUID(int=5)
    assert with_key(own.bytes, "uuid")["_key"] == str(own)
    fields = [{"name": "id", "type": "long"}, {"name": "area", "type": "string"}]
    record = {"type": "record", "name": "Key", "fields": fields}
    (tmp_path / "1.avsc").write_text(json.dumps(record))
    (tmp_path / "2.avsc").write_text('"long"')
    registry = Avro(registry=str(tmp_path))
    sent = b"\0\0\0\0\1" + b"\x0a" + b"\x06Z\xc3\xbc"
    found = with_key(sent, registry)
    assert (found["_key.id"], found["_key.area"], "_key" in found) == (5, "Zü", False)
    assert with_key(b"\0\0\0\0\2\x0a", registry)["_key"] == 5


@pytest.mark.parametrize(
    ("kind", "key", "why"),
    [
        ("long", b"\0\0\0\1", "4 bytes are no long"),
        ("int", b"", "0 bytes are no int"),
        ("uuid", b"a" * 36, "36 bytes are no uuid"),
        (Avro(registry="nowhere"), b"x", "header of a schema registry"),
    ],
)
def test_m011_a_key_that_is_not_of_its_format_costs_its_message(
    kind: KeyFormat, key: bytes, why: str
) -> None:
    text = payload_of(cast(Message, Sent(b'{"id":1}', named=key)), "json", "skip", kind)[0]
    known, end = json.JSONDecoder().raw_decode(text)
    assert b64decode(known["_key_bytes"]) == key
    assert why in text[end:]
    assert text.endswith('{"id":1}')
