"""The generator of the measurement in real time, which is never put off."""

from __future__ import annotations

from typing import Any, cast

import pytest

pytest.importorskip("confluent_kafka", reason="needs the extra: pip install 'rivermark[kafka]'")


class Full:
    """A producer without room for a message until it was polled twice."""

    def __init__(self) -> None:
        self.polled = 0
        self.sent: list[tuple[str, str, bytes]] = []

    def poll(self, _seconds: float) -> int:
        self.polled += 1
        return 0

    def produce(self, topic: str, value: str, *, key: bytes) -> None:
        if self.polled < 2:
            raise BufferError("Local: Queue full")
        self.sent.append((topic, value, key))


def test_a_message_waits_for_room_in_a_client_that_is_far_behind() -> None:
    from bench.real_time import READINGS, send

    producer = Full()

    send(cast(Any, producer), b"s1", "{}")

    assert producer.sent == [(READINGS, "{}", b"s1")]


def test_the_longest_silence_is_between_two_moments_in_their_order() -> None:
    from bench.real_time import longest_silence

    assert longest_silence([]) == longest_silence([5.0]) == 0
    assert longest_silence([3.0, 1.0, 1.5, 3.25]) == 1.5
