"""Stored state read from outside, by the schema that stands in front of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rivermark.process import (
    TTL,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ListState,
    MapState,
    StateUnreadable,
    ValueState,
)
from rivermark.process.engine.stored_state import StoredBucket
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import NOON, Note, Reading, reading


class Inner(msgspec.Struct, array_like=True):
    money: Decimal
    id: UUID


class Everything(KeyedProcess[Reading, Note]):
    readings = Input(Reading, key="sensor", time="at")
    rules = Broadcast(Reading, time="at")
    order = "event_time"
    hold = True

    last: ValueState[Reading]
    recent: ValueState[int] = ValueState(ttl=TTL(timedelta(seconds=5)))
    values: ListState[tuple[int, Inner]]
    by_value: MapState[int, Inner | None]
    limits: BroadcastState[str, int]

    def on_readings(self, event: Reading, ctx: Context[Note]) -> None:
        inner = Inner(Decimal("1.20"), UUID(int=1))
        self.last.value = event
        self.recent.value = event.value
        self.values.append((1, inner))
        self.by_value[7] = inner
        ctx.timers.event.register(event.at + 10)
        ctx.timers.processing.register(99)

    def on_rules(self, event: Reading, ctx: Context[Note]) -> None:
        self.limits[event.sensor] = event.value

    def on_timer(self, at: int, ctx: Context[Note]) -> None: ...


def stored() -> bytes:
    harness = ProcessHarness(Everything())
    harness.feed(reading("hot", NOON - 1, 30), "rules")
    harness.feed([reading("a", NOON, 3), reading("b", NOON + 1, 4)], "readings")
    harness.advance_watermark(NOON)
    assert harness.state is not None
    return harness.state


def test_states_and_timers_of_a_key_are_shown_without_the_code_that_wrote_them() -> None:
    bucket = StoredBucket(stored())
    inner = {"money": "1.20", "id": str(UUID(int=1))}

    assert bucket.schema.process == "Everything"
    assert bucket.watermark == NOON
    assert bucket.keys() == ["a"]
    assert bucket.state_of("a") == {
        "last": {"sensor": "a", "at": NOON, "value": 3},
        "recent": {"value": 3, "until": NOON + 5_000},
        "values": [[1, inner]],
        "by_value": {7: inner},
    }
    assert bucket.timers_of("a") == {"event": [NOON + 10], "processing": [99]}
    assert bucket.broadcasts == {
        "limits": {"version": 1, "changed_at": NOON - 1, "entries": {"hot": 30}}
    }
    assert list(bucket.waiting()) == [
        ("readings", "b", NOON + 1, {"sensor": "b", "at": NOON + 1, "value": 4})
    ]


def test_a_key_without_state_shows_empty_ones() -> None:
    bucket = StoredBucket(stored())

    assert bucket.state_of("z") == {"last": None, "recent": None, "values": [], "by_value": {}}
    assert bucket.timers_of("z") == {"event": [], "processing": []}


@pytest.mark.parametrize("damaged", [b"", b"what", msgspec.msgpack.encode([1, b"x", []])])
def test_what_is_no_bucket_is_refused(damaged: Any) -> None:
    with pytest.raises(StateUnreadable):
        StoredBucket(damaged)
