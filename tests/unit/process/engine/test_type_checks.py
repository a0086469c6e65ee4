"""Values of wrong types: told with the key (and the event) before they could spoil stored state."""

from __future__ import annotations

from typing import Annotated, Any

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
    Misuse,
    ProcessError,
    ValueState,
)
from rivermark.testing import ProcessHarness

Positive = Annotated[int, msgspec.Meta(ge=0)]


class Item(msgspec.Struct, frozen=True):
    """A constraint is not looked at when an event is made, but when it is read from storage."""

    name: str
    at: int
    value: Positive = 0


class Told(msgspec.Struct, frozen=True):
    name: str
    value: int = 0


class Broken(msgspec.Struct):
    count: int = 0


def item(value: int, name: str = "a", at: int = 1) -> Item:
    return Item(name, at, value)


class Keeps(KeyedProcess[Item, Told]):
    """Stores what cannot be read back when the value is below zero."""

    key = "name"
    time = "at"
    last: ValueState[Item]
    broken: ValueState[Broken]
    values: ListState[int]
    by_value: MapState[int, list[int]]

    def on_event(self, event: Item, ctx: Context[Told]) -> None:
        wrong: Any = "x"
        match event.value:
            case -1:
                self.last.value = event
            case -2:
                self.broken.value = Broken(wrong)
            case -3:
                self.values.append(wrong)
            case -4:
                self.by_value[wrong] = []
            case -5:
                self.by_value[1] = [wrong]
            case -6:
                ctx.emit(Told(event.name, wrong))
            case -7:
                self.values.append(1 << 70)
            case -8:
                self.broken.value = Broken()
                self.broken.value.count = wrong
            case _:
                self.values.append(event.value)
        ctx.emit(Told(event.name, event.value))


class Careful(Keeps):
    dead_letter = True


WRONG = [-1, -2, -3, -4, -5, -6, -7, -8]


@pytest.mark.parametrize("value", WRONG)
def test_with_dead_letters_only_the_event_that_left_it_is_set_aside(value: int) -> None:
    careful = ProcessHarness(Careful())
    careful.feed([item(1), item(value), item(2)])

    assert careful.outputs() == [Told("a", 1), Told("a", 2)]
    assert careful.state_of("a") == {
        "last": None, "broken": None, "values": [1, 2], "by_value": {},
    }  # fmt: skip
    (dead,) = careful.dead_letters()
    assert (dead.event, dead.key, dead.input) == (item(value), "a", "events")


@pytest.mark.parametrize("value", WRONG)
def test_otherwise_the_batch_fails_and_nothing_is_stored_of_it(value: int) -> None:
    keeps = ProcessHarness(Keeps())
    keeps.feed(item(1))
    before = keeps.state
    with pytest.raises(Misuse, match=r"'a'|Told"):
        keeps.feed([item(5), item(value)])

    assert keeps.state == before


class Waits(KeyedProcess[Item, Told]):
    key = "name"
    time = "at"
    order = "event_time"
    hold = True

    def on_event(self, event: Item, ctx: Context[Told]) -> None:
        ctx.emit(Told(event.name, event.value))


def name_of(event: Item) -> str:
    wrong: Any = 7
    return event.name if event.value >= 0 else wrong


class WaitsByFunction(Waits):
    key = staticmethod(name_of)  # type: ignore[assignment]


class CarefulWaits(Waits):
    dead_letter = True


class CarefulByFunction(WaitsByFunction):
    dead_letter = True


def test_a_waiting_event_that_its_class_refuses_is_told_or_set_aside() -> None:
    waits = ProcessHarness(Waits())
    waits.feed([item(1), item(-1, at=2)])
    with pytest.raises(ProcessError, match=r"key 'a', event \{'name': 'a'.*no event of input"):
        waits.end_of_input()

    careful = ProcessHarness(CarefulWaits())
    careful.feed([item(1), item(-1, at=2), item(3, at=3)])
    assert careful.end_of_input() == [Told("a", 1), Told("a", 3)]
    (dead,) = careful.dead_letters()
    assert dead.payload() == '{"name":"a","at":2,"value":-1}'
    assert careful.is_empty()


def test_a_key_of_a_wrong_type_never_waits_in_the_state() -> None:
    with pytest.raises(ProcessError, match=r"on key 7, event Item.*holds str, not 7"):
        ProcessHarness(WaitsByFunction()).feed([item(1), item(-1)])

    careful = ProcessHarness(CarefulByFunction())
    careful.feed([item(1), item(-1), item(2, at=3)])
    assert careful.end_of_input() == [Told("a", 1), Told("a", 2)]
    assert [each.event for each in careful.dead_letters()] == [item(-1)]


def test_key_functions_that_raise_are_told_with_the_event_or_set_aside() -> None:
    class Fails(Waits):
        key = staticmethod(failing)  # type: ignore[assignment]

    class FailsCarefully(Fails):
        dead_letter = True

    with pytest.raises(ProcessError, match=r"event Item\(name='a', at=1, value=0.*ZeroDivision"):
        ProcessHarness(Fails()).feed([item(1), item(0)])

    careful = ProcessHarness(FailsCarefully())
    careful.feed([item(1), item(0)])
    assert careful.end_of_input() == [Told("a", 1)]
    assert [each.error for each in careful.dead_letters()] == ["ZeroDivisionError"]


def failing(event: Item) -> str:
    return event.name * (1 // event.value)


class Counts(KeyedProcess[Item, Told]):
    key = "name"
    time = "at"
    hold = False

    def on_event(self, event: Item, ctx: Context[Told]) -> None:
        half: Any = 0.5
        match event.value:
            case 1:
                ctx.count("halves", half)
            case 2:
                text: Any = "many"
                ctx.gauge("open", text)
            case _:
                ctx.timers.event.register(1 << 70)

    def on_timer(self, at: int, ctx: Context[Told]) -> None: ...


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "counts by whole numbers"),
        (2, "set to a number"),
        (3, "outside the 64-bit millisecond range"),
    ],
)
def test_numbers_that_could_not_be_kept_are_told_with_the_event(value: int, message: str) -> None:
    with pytest.raises(ProcessError, match=f"on key 'a', event Item.*{message}"):
        ProcessHarness(Counts()).feed(item(value))


class Limit(msgspec.Struct, frozen=True):
    name: str
    at: int
    most: int


class Limited(KeyedProcess[Any, Told]):
    items = Input(Item, key="name", time="at")
    changes = Broadcast(Limit, time="at")
    limits: BroadcastState[str, Limit]

    def on_items(self, event: Item, ctx: Context[Told]) -> None:
        ctx.emit(Told(event.name, self.limits[event.name].most))

    def on_changes(self, event: Limit, ctx: Context[Told]) -> None:
        wrong: Any = "x"
        name: Any = event.name if event.most >= -1 else 5
        self.limits[name] = Limit(event.name, event.at, wrong if event.most == -1 else event.most)


class CarefulLimited(Limited):
    dead_letter = True


@pytest.mark.parametrize("most", [-1, -2])
def test_a_rule_of_a_wrong_type_is_told_with_its_event_and_never_stored(most: int) -> None:
    limited = ProcessHarness(Limited())
    limited.feed(Limit("x", 1, 5), "changes")
    with pytest.raises(ProcessError, match=f"event Limit.*most={most}.*'limits'.* holds"):
        limited.feed(Limit("x", 2, most), "changes")
    assert limited.feed(item(1, "x", 3), "items") == [Told("x", 5)]

    careful = ProcessHarness(CarefulLimited())
    careful.feed([Limit("x", 1, 5), Limit("x", 2, most)], "changes")
    assert careful.feed(item(1, "x", 3), "items") == [Told("x", 5)]
    assert [each.event for each in careful.dead_letters()] == [Limit("x", 2, most)]
