"""What a message becomes: what is known of it, then its own members; without a broker."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from confluent_kafka import Message

from rivermark.ingest.source.kafka.messages import payload_of
from rivermark.ingest.source.kafka.reader import EPOCH, moment_of

KNOWN = '{"_topic":"rides","_partition":3,"_offset":77'
AT = ',"_timestamp":"2024-03-01T10:00:00.005Z"'


@dataclass
class Sent:
    """A message as the client returns it."""

    content: bytes | None
    sent_at: tuple[int, int] = (1, 1_709_287_200_005)

    def value(self) -> bytes | None:
        return self.content

    def key(self) -> bytes | None:
        return None

    def headers(self) -> Any:
        return None

    def timestamp(self) -> tuple[int, int]:
        return self.sent_at

    def topic(self) -> str:
        return "rides"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 77


@pytest.mark.parametrize(
    ("value", "rest"),
    [
        (b'{"id":1}', ',"id":1}'),
        (b' {"id":1}', ',"id":1}'),
        (b'{ "id":1}', ',"id":1}'),
        (b"\xef\xbb\xbf{}", "}"),
        (b'{"id"', ',"id"'),
        (b"[1]", "} [1]"),
        (b"", '} ""'),
        (b'{"id":"\xff"}', ',"_bytes":"eyJpZCI6Iv8ifQ=="} {"id":"\ufffd"}'),
    ],
)
def test_members_follow_what_is_known_and_what_is_no_object_stands_behind_it(
    value: bytes, rest: str
) -> None:
    assert payload_of(cast(Message, Sent(value)), "json") == f"{KNOWN}{AT}{rest}"
    without_time = payload_of(cast(Message, Sent(value, (0, -1))), "json")
    assert without_time == f"{KNOWN}{rest}"


def test_a_tombstone_is_nothing_or_a_record_that_says_so() -> None:
    assert payload_of(cast(Message, Sent(None)), "json") == ""
    kept = json.loads(payload_of(cast(Message, Sent(None)), "json", "rows"))
    assert kept["_tombstone"] is True


@pytest.mark.parametrize("millis", [1_709_287_200_005_000, 2**63 - 1, -(2**62)])
def test_a_timestamp_in_another_unit_costs_its_message_alone(millis: int) -> None:
    sent = cast(Message, Sent(b'{"id":1}', (1, millis)))
    assert json.loads(payload_of(sent, "json"))["_timestamp"] == f"{millis} ms"
    assert moment_of(millis) in (EPOCH, datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC))
