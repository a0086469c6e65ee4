"""Stored state read from outside, by the schema that stands in front of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.engine.stored_state import StoredBucket
from rivermark.process.errors import StateUnreadable
from rivermark.testing import ProcessHarness
from tests.unit.process.engine.test_earlier_state import NOON, SECOND, STORED
from tests.unit.process.readings import Note, Reading, reading


@pytest.fixture
def bucket() -> StoredBucket:
    """The bucket of an earlier release, which is what is stored today, with every kind of state."""
    return StoredBucket(STORED.read_bytes())


def cost(number: int) -> dict[str, Any]:
    since = datetime(2020, 1, 1, tzinfo=UTC)
    return {"money": "1.20", "id": str(UUID(int=number)), "since": since}


def lives(number: int, seconds: int) -> dict[str, int]:
    return {"value": number, "until": NOON + (number + seconds) * SECOND}


def test_states_and_timers_of_a_key_are_shown_without_the_code_that_wrote_them(
    bucket: StoredBucket,
) -> None:
    assert bucket.schema.process == "Everything"
    assert bucket.watermark == NOON + 23 * SECOND
    assert bucket.keys() == [f"s{n:02}" for n in range(12)]
    assert bucket.state_of("s01") == {
        "last": {"sensor": "s01", "at": NOON + 13 * SECOND, "value": 13},
        "cost": cost(13),
        "values": [[1, "s01"], [13, "s01"]],
        "by_value": {1: cost(1), 13: cost(13)},
        "recent": lives(13, 60),
        "once": {"n1": lives(1, 120), "n13": lives(13, 120)},
        "shown": [{"value": n, "until": 182_000} for n in (1, 13)],
    }
    assert bucket.state_of("s00")["by_value"] == {0: None, 12: None}
    assert bucket.timers_of("s00") == {
        "event": [NOON + seconds * SECOND for seconds in (30, 32, 42)],
        "processing": [5_000],
    }
    assert bucket.broadcasts == {
        "limits": {"version": 2, "changed_at": NOON - 1, "entries": {"hot": 30, "cold": -5}}
    }
    assert list(bucket.waiting()) == [
        ("readings", sensor, at, {"sensor": sensor, "at": at, "value": value})
        for sensor, at, value in (
            ("s99", NOON + 40 * SECOND, 31),
            ("s01", NOON + 50 * SECOND, 3),
        )
    ]


def test_a_key_without_state_shows_empty_ones(bucket: StoredBucket) -> None:
    assert bucket.state_of("z") == {
        "last": None, "cost": None, "values": [], "by_value": {}, "recent": None, "once": {},
        "shown": [],
    }  # fmt: skip
    assert bucket.timers_of("z") == {"event": [], "processing": []}


@pytest.mark.parametrize("damaged", [b"", b"what", msgspec.msgpack.encode([1, b"x", []])])
def test_what_is_no_bucket_is_refused(damaged: Any) -> None:
    with pytest.raises(StateUnreadable):
        StoredBucket(damaged)


def test_timers_of_a_key_of_several_fields_are_found() -> None:
    class Pairs(KeyedProcess[Reading, Note]):
        key = ("sensor", "value")
        time = "at"
        hold = False
        last: ValueState[int]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.last.value = 1
            ctx.timers.event.register(event.at + 10)

        def on_timer(self, at: int, ctx: Context[Note]) -> None: ...

    pairs = ProcessHarness(Pairs())
    pairs.feed(reading("a", NOON, 1))
    stored = pairs.state
    assert stored is not None

    bucket = StoredBucket(stored)
    assert bucket.keys() == [("a", 1)]
    assert bucket.timers_of(("a", 1)) == {"event": [NOON + 10], "processing": []}
