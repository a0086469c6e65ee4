"""State stored by an earlier declaration: taken over, migrated, or refused with reasons."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, ClassVar

import msgspec
import pytest

from rivermark.process import (
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ListState,
    MapState,
    ValueState,
)
from rivermark.process.errors import StateUnreadable
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import NOON, Note, Reading, reading


class TripV1(msgspec.Struct, array_like=True):
    taxi: int
    fare: float
    driver: str


class TripV2(msgspec.Struct, array_like=True):
    """Fields moved, one added with a default."""

    driver: str
    taxi: int
    fare: float
    tips: Decimal = Decimal(0)


class TripV3(msgspec.Struct):
    """The driver is gone, the fare has another type, fields are stored by name."""

    taxi: int
    fare: Decimal


class Empty(KeyedProcess[Reading, Note]):
    """What the versions share; the state of one is given to the next."""

    key = "sensor"
    time = "at"

    def on_event(self, event: Reading, ctx: Context[Note]) -> None: ...

    def on_timer(self, at: int, ctx: Context[Note]) -> None: ...


class V1(Empty):
    hold = False
    trip: ValueState[TripV1]
    trips: ListState[TripV1]
    by_taxi: MapState[int, TripV1]
    old: ValueState[int]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        trip = TripV1(event.value, 1.5, "ann")
        self.trip.value = trip
        self.trips.append(trip)
        self.by_taxi[event.value] = trip
        self.old.value = 1
        ctx.timers.event.register(event.at + 10)


class V2(Empty):
    version = 2
    forgets = ("old",)

    added: MapState[str, int]
    by_taxi: MapState[int, TripV2]
    trips: ListState[TripV2]
    trip: ValueState[TripV2 | None]


def to_decimals(old: Any, version: int) -> TripV3:
    assert version == 2
    return TripV3(taxi=old["taxi"], fare=Decimal(str(old["fare"])))


class V3(Empty):
    version = 3
    forgets = ("added",)
    migrations: ClassVar = {"trip": to_decimals, "trips": to_decimals, "by_taxi": to_decimals}

    trip: ValueState[TripV3]
    trips: ListState[TripV3]
    by_taxi: MapState[int, TripV3]


def stored_by(process: KeyedProcess[Any, Any], *events: Any) -> bytes:
    harness = ProcessHarness(process)
    harness.feed(events or [reading("a", NOON, 7), reading("b", NOON, 8)])
    assert harness.state is not None
    return harness.state


def test_added_states_and_fields_take_their_defaults_whatever_moved() -> None:
    second = ProcessHarness(V2())
    second.restore(stored_by(V1()))

    trip = TripV2(driver="ann", taxi=7, fare=1.5, tips=Decimal(0))
    assert second.state_of("a") == {
        "added": {},
        "by_taxi": {7: trip},
        "trips": [trip],
        "trip": trip,
    }
    assert second.timers_of("a").event == (NOON + 10,)


def test_a_migration_turns_every_stored_value_into_the_new_type() -> None:
    second = ProcessHarness(V2())
    second.restore(stored_by(V1()))
    second.feed(reading("a", NOON, 0))
    third = ProcessHarness(V3())
    third.restore(second.state)

    trip = TripV3(taxi=8, fare=Decimal("1.5"))
    assert third.state_of("b") == {"trip": trip, "trips": [trip], "by_taxi": {8: trip}}


def test_a_bucket_is_stored_under_the_new_schema_once_it_is_touched() -> None:
    second = ProcessHarness(V2())
    old = stored_by(V1())
    second.restore(old)
    second.feed(reading("new", NOON, 0))

    assert second.state != old
    again = ProcessHarness(V2())
    again.restore(second.state)
    assert again.state_of("a")["trips"][0].driver == "ann"


def test_a_migration_that_gives_another_type_names_the_key() -> None:
    class Wrong(Empty):
        version = 2
        forgets = ("trips", "by_taxi", "old")
        migrations: ClassVar = {"trip": lambda old, version: "no trip"}
        trip: ValueState[TripV3]

    with pytest.raises(StateUnreadable, match="the state of key 'a', written by version 1"):
        ProcessHarness(Wrong()).restore(stored_by(V1()))


class ReadingV2(msgspec.Struct, frozen=True):
    sensor: str
    at: int
    value: float = 0.0
    unit: str = "F"


class RuleV1(msgspec.Struct, frozen=True):
    limit: int


class RuleV2(msgspec.Struct, frozen=True):
    limit: float
    name: str = "rule"


class HoldsV1(KeyedProcess[Reading, Note]):
    readings = Input(Reading, key="sensor", time="at")
    changes = Broadcast(Reading, time="at")
    order = "event_time"
    hold = True
    rules: BroadcastState[str, RuleV1]

    def on_readings(self, event: Reading, ctx: Context[Note]) -> None: ...

    def on_changes(self, event: Reading, ctx: Context[Note]) -> None:
        self.rules[event.sensor] = RuleV1(event.value)


class HoldsV2(KeyedProcess[ReadingV2, Note]):
    changes = Broadcast(Reading, time="at")
    others = Input(Reading, key="sensor", time="at", control=True)
    readings = Input(ReadingV2, key="sensor", time="at")
    order = "event_time"
    hold = True
    rules: BroadcastState[str, RuleV2]

    def on_readings(self, event: ReadingV2, ctx: Context[Note]) -> None:
        rule = self.rules["hot"]
        ctx.emit(Note(f"{event.value} {event.unit} {rule.limit} {rule.name} {self.rules.version}"))

    def on_changes(self, event: Reading, ctx: Context[Note]) -> None: ...

    def on_others(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_waiting_events_and_rules_are_taken_over_too() -> None:
    first = ProcessHarness(HoldsV1())
    first.feed(Reading("hot", NOON, 30), "changes")
    first.advance_watermark(NOON)
    first.feed(reading("a", NOON + 5, 7), "readings")
    second = ProcessHarness(HoldsV2())
    second.restore(first.state)

    assert second.waiting() == 1
    assert second.advance_watermark(NOON + 5) == [Note("7.0 F 30.0 rule 1")]


class Heat(msgspec.Struct, tag="heat", array_like=True):
    degrees: int


class Smoke(msgspec.Struct, tag="smoke", array_like=True):
    density: int


class HeatV2(msgspec.Struct, tag="heat"):
    degrees: float
    where: str = "?"


class SmokeV2(msgspec.Struct, tag="smoke"):
    density: int


def test_parts_of_a_union_are_told_apart_by_their_tags() -> None:
    class Before(Empty):
        seen: ListState[Heat | Smoke]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.seen.extend([Heat(3), Smoke(4)])

    class After(Empty):
        seen: ListState[HeatV2 | SmokeV2]

    after = ProcessHarness(After())
    after.restore(stored_by(Before()))

    assert after.state_of("a") == {"seen": [HeatV2(3.0), SmokeV2(4)]}
