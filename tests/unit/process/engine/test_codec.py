"""Stored buckets: compact, only rewritten when touched, refused when damaged, measured."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec
import pytest

from rivermark.process import (
    BEGINNING,
    Context,
    KeyedProcess,
    Limits,
    ListState,
    MapState,
    ProcessError,
    ValueState,
)
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.errors import StateTooLarge, StateUnreadable
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import HOUR, NOON, Note, Reading, reading


class Last(KeyedProcess[Reading, Note]):
    key = "sensor"
    time = "at"
    hold = False
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        self.last.value = event
        ctx.timers.event.register(event.at + HOUR)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        self.last.clear()


def arrivals(rows: list[Reading]) -> Arrivals:
    return Arrivals("events", rows, [each.sensor for each in rows], [each.at for each in rows])


def test_a_bucket_that_a_batch_does_not_change_is_given_back_as_it_was() -> None:
    engine = Engine(Last())
    stored = engine.run(None, [arrivals([reading("a")])], BEGINNING, 0).state

    assert engine.run(stored, [], BEGINNING, 0).state is stored
    assert engine.run(stored, [arrivals([reading("a")])], BEGINNING, 0).state is stored


def test_a_bucket_says_when_it_has_to_be_woken() -> None:
    engine = Engine(Last())
    ran = engine.run(None, [arrivals([reading("a"), reading("b", NOON + 5)])], BEGINNING, 0)

    assert (ran.wake_at, ran.wake_at_processing) == (NOON + HOUR, None)
    woken = engine.run(ran.state, [], NOON + HOUR, 0)
    assert woken.wake_at == NOON + HOUR + 5
    assert engine.run(woken.state, [], NOON + HOUR + 5, 0).wake_at is None


def test_a_bucket_whose_timers_are_gone_is_not_woken() -> None:
    class Undecided(Last):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.timers.event.register(event.at + HOUR)
            ctx.timers.processing.register(5)
            ctx.timers.event.delete(event.at + HOUR)
            ctx.timers.processing.delete(5)

    ran = Engine(Undecided()).run(None, [arrivals([reading("a")])], BEGINNING, 0)

    assert (ran.state, ran.wake_at, ran.wake_at_processing) == (None, None, None)


def test_after_a_failed_batch_the_next_one_runs_as_if_it_had_not_been() -> None:
    class FailsOnce(Last):
        def on_timer(self, at: int, ctx: Context[Note]) -> None:
            raise ValueError("once")

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            super().on_event(event, ctx)
            ctx.emit(Note(f"{ctx.timer} {ctx.is_late}"))

    engine = Engine(FailsOnce())
    stored = engine.run(None, [arrivals([reading("a")])], BEGINNING, 0).state
    with pytest.raises(ProcessError, match="once"):
        engine.run(stored, [], NOON + HOUR, 0)

    again = engine.run(stored, [arrivals([reading("a")])], NOON, 0)
    assert again.outputs.main == [Note("None True")]


def test_records_of_untouched_keys_stay_encoded() -> None:
    engine = Engine(Last())
    stored = engine.run(None, [arrivals([reading("a"), reading("b")])], BEGINNING, 0).state
    bucket = engine.open(stored)
    engine.advance(bucket, [arrivals([reading("a", NOON, 2)])], BEGINNING, 0)

    assert isinstance(bucket.records["b"], msgspec.Raw)
    assert bucket.touched == ["a"]


def test_state_is_compact() -> None:
    engine = Engine(Last())
    rows = [reading(f"{n:06}", NOON + n) for n in range(1_000)]
    stored = engine.run(None, [arrivals(rows)], BEGINNING, 0).state
    assert stored is not None

    record = len(msgspec.msgpack.encode([rows[0]]))
    key_twice_and_timer = 2 * 7 + 9 + 1
    assert len(stored) < 1_000 * (record + key_twice_and_timer) + 500


class Colour(Enum):
    RED = "red"


class Kinds(msgspec.Struct, frozen=True):
    whole: int = 1
    real: float = 0.5
    text: str = "x"
    raw: bytes = b"\x00"
    yes: bool = True
    day: date = date(2020, 1, 1)
    moment: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    money: Decimal = Decimal("1.10")
    uuid: UUID = UUID(int=7)
    colour: Colour = Colour.RED
    pair: tuple[int, str] = (1, "a")
    maybe: int | None = None
    span: timedelta = timedelta(days=1)
    several: frozenset[int] = frozenset([1, 2])


def test_values_of_every_storable_kind_come_back_equal() -> None:
    class Keeps(KeyedProcess[Reading, Note]):
        key = "sensor"
        kinds: ValueState[Kinds]
        by_pair: MapState[tuple[int, str], Kinds]
        listed: ListState[tuple[Decimal, date]]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.kinds.value = Kinds()
            self.by_pair[1, "a"] = Kinds(whole=2)
            self.listed.append((Decimal("0.1"), date(2020, 1, 2)))

    keeps = ProcessHarness(Keeps())
    keeps.feed(reading("a"))

    assert keeps.state_of("a") == {
        "kinds": Kinds(),
        "by_pair": {(1, "a"): Kinds(whole=2)},
        "listed": [(Decimal("0.1"), date(2020, 1, 2))],
    }


@pytest.mark.parametrize(
    "key",
    [
        7,
        "seven",
        b"7",
        True,
        date(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        Decimal("7.0"),
        UUID(int=7),
        Colour.RED,
    ],
)
def test_keys_of_every_allowed_kind_find_their_state_again(key: Any) -> None:
    event = msgspec.defstruct(
        "Event", [("id", type(key)), ("n", int)], namespace={"__module__": "x"}
    )

    class Counts(KeyedProcess[event, Note]):  # type: ignore[valid-type]
        key = "id"
        count: ValueState[int]

        def on_event(self, event: Any, ctx: Context[Note]) -> None:
            self.count.value = self.count.get(0) + 1

    counts = ProcessHarness(Counts())
    for _ in range(3):
        counts.feed(event(key, 1))

    assert counts.all_keys() == [key]
    assert counts.state_of(key) == {"count": 3}


def test_a_key_of_several_fields_finds_its_state_again() -> None:
    class Counts(KeyedProcess[Reading, Note]):
        key = ("sensor", "value")
        count: ValueState[int]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.count.value = self.count.get(0) + 1

    counts = ProcessHarness(Counts())
    for _ in range(2):
        counts.feed([reading("a", NOON, 1), reading("a", NOON, 2)])

    assert counts.state_of(("a", 1)) == {"count": 2}
    assert len(counts.all_keys()) == 2


def test_damaged_state_is_refused() -> None:
    engine = Engine(Last())
    stored = engine.run(None, [arrivals([reading("a")])], BEGINNING, 0).state
    assert stored is not None

    with pytest.raises(StateUnreadable, match="process 'Last': stored state cannot be read"):
        engine.open(stored[:-3])
    with pytest.raises(StateUnreadable, match="stored state cannot be read"):
        engine.open(b"what is this")


def test_state_of_a_later_layout_is_refused() -> None:
    later = msgspec.msgpack.encode([9, b"", []])

    with pytest.raises(StateUnreadable, match="state has layout 9"):
        Engine(Last()).open(later)


class Hoards(KeyedProcess[Reading, Note]):
    key = "sensor"
    values: ListState[int]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        self.values.extend([1] * event.value)


def test_a_bucket_beyond_its_limit_names_its_largest_keys() -> None:
    hoards = ProcessHarness(Hoards(), limits=Limits(bucket=10_000))
    hoards.feed([reading(f"small {n}", value=10) for n in range(20)])

    with pytest.raises(StateTooLarge) as failure:
        hoards.feed([reading("huge", value=9_000), reading("large", value=2_000)])

    assert "a bucket of 22 keys has 11," in str(failure.value)
    assert "the largest keys: 'huge' (9,004), 'large' (2,004), 'small" in str(failure.value)


def test_a_key_beyond_its_limit_is_named_in_the_batch_that_makes_it_so() -> None:
    hoards = ProcessHarness(Hoards(), limits=Limits(key=1_000))
    hoards.feed([reading("a", value=900), reading("b", value=900)])

    with pytest.raises(StateTooLarge, match=r"keys with more than 1,000 bytes of state: 'a' "):
        hoards.feed(reading("a", value=200))
