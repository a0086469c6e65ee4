"""What happens when a handler raises: a clear error, or a dead letter without effects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rivermark.model.errors import DeclarationError
from rivermark.process import (
    TTL,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ListState,
    MapState,
    Misuse,
    ProcessError,
    SideOutput,
    ValueState,
)
from rivermark.process.api.inputs import Arrivals
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import HOUR, NOON, Note, Reading, reading


class Counted(msgspec.Struct, frozen=True):
    name: str
    at: int


class Count(msgspec.Struct):
    n: int = 0


class Fragile(KeyedProcess[Reading, Note]):
    """Changes all it has, then fails on a negative value."""

    key = "sensor"
    time = "at"
    hold = False

    count: ValueState[Count]
    values: ListState[int]
    recent: MapState[int, int] = MapState(ttl=TTL(timedelta(hours=1)))
    seen = SideOutput("seen", Note)

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        count = self.count.get(Count())
        count.n += 1
        self.count.value = count
        self.values.append(event.value)
        self.recent[event.value] = event.at
        ctx.timers.event.register(event.at + 10)
        ctx.timers.event.delete(NOON + 10)
        ctx.output(self.seen, Note(f"saw {event.value}"))
        ctx.emit(Note(f"{event.sensor} {10 // (event.value + 1)}"))

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        self.values.append(-1)
        if at == NOON + 99:
            raise ValueError("no such hour")


class Careful(Fragile):
    dead_letter = True


def test_an_error_names_process_key_event_and_line() -> None:
    with pytest.raises(ProcessError) as failure:
        ProcessHarness(Fragile()).feed([reading("a", NOON, 1), reading("b", NOON, -1)])

    assert failure.value.key == "b"
    assert failure.value.event == reading("b", NOON, -1)
    assert "process 'Fragile' failed on key 'b', event Reading(sensor='b'" in str(failure.value)
    assert "ZeroDivisionError" in str(failure.value)
    assert failure.value.line.startswith("test_errors.py:")
    assert failure.value.line.endswith(
        'ctx.emit(Note(f"{event.sensor} {10 // (event.value + 1)}"))'
    )


def test_an_error_in_a_timer_names_its_instant() -> None:
    fragile = ProcessHarness(Fragile())
    fragile.feed(reading("a", NOON + 89, 1))

    with pytest.raises(ProcessError, match=f"timer at {NOON + 99}: ValueError: no such hour"):
        fragile.advance_watermark(NOON + 99)


def test_a_failed_batch_changes_nothing_and_can_be_run_again() -> None:
    fragile = ProcessHarness(Fragile())
    fragile.feed(reading("a", NOON, 1))
    before = fragile.state_of("a"), fragile.timers_of("a"), fragile.outputs()

    with pytest.raises(ProcessError):
        fragile.feed([reading("a", NOON, 5), reading("a", NOON, -1)])

    assert (fragile.state_of("a"), fragile.timers_of("a"), fragile.outputs()) == before


def test_a_dead_letter_holds_the_event_and_the_error_and_leaves_no_effect() -> None:
    careful = ProcessHarness(Careful())
    careful.feed([reading("a", NOON, 1), reading("b", NOON, 2)])
    state, timers = careful.state_of("a"), careful.timers_of("a")
    assert timers.event == ()  # its own, for NOON + 10, was deleted by the handler

    careful.feed([reading("a", NOON + 5, -1), reading("new", NOON + 5, -1)])

    letter, of_new_key = careful.dead_letters()
    assert (letter.process, letter.input, letter.key) == ("Careful", "events", "a")
    assert letter.event == reading("a", NOON + 5, -1)
    assert (letter.error, letter.at) == ("ZeroDivisionError", NOON + 5)
    assert "in on_event" in letter.line
    assert msgspec.json.decode(letter.payload(), type=Reading) == letter.event
    assert of_new_key.key == "new"
    assert careful.state_of("a") == state
    assert careful.timers_of("a") == timers
    assert careful.side("seen") == [Note("saw 1"), Note("saw 2")]
    assert sorted(careful.all_keys()) == ["a", "b"]


def test_one_bad_event_of_many_does_not_stop_the_others() -> None:
    careful = ProcessHarness(Careful())
    careful.feed([reading("a", NOON, -1 if n == 500 else n) for n in range(1_000)])

    assert len(careful.outputs()) == 999
    assert careful.state_of("a")["count"] == Count(999)
    assert [each.event.value for each in careful.dead_letters()] == [-1]


def test_a_dead_letter_can_be_replayed_into_a_mended_process() -> None:
    careful = ProcessHarness(Careful())
    careful.feed(reading("a", NOON, -1))
    letter = careful.dead_letters()[0]

    class Mended(Careful):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"mended {event.value}"))

    mended = ProcessHarness(Mended())

    assert mended.feed(letter.event, letter.input) == [Note("mended -1")]


def test_a_timer_that_raises_becomes_a_dead_letter_and_the_others_fire() -> None:
    careful = ProcessHarness(Careful())
    careful.feed([reading("a", NOON + 89, 1), reading("a", NOON + 95, 1)])
    before = careful.state_of("a")["values"]
    careful.advance_watermark(NOON + 200)

    letter = careful.dead_letters()[0]
    assert (letter.input, letter.event, letter.at) == (None, None, NOON + 99)
    assert careful.state_of("a")["values"] == [*before, -1]
    assert careful.timers_of("a").event == ()


def test_timers_and_lives_of_a_failed_event_are_taken_back_too() -> None:
    careful = ProcessHarness(Careful())
    careful.feed(reading("a", NOON, -1))
    assert careful.is_empty()
    assert careful.advance_watermark(NOON + 2 * HOUR) == []


class Switch(msgspec.Struct, frozen=True):
    name: str
    on: int


class Switched(KeyedProcess[Reading, Note]):
    readings = Input(Reading, key="sensor", time="at")
    switches = Broadcast(Switch)
    dead_letter = True

    settings: BroadcastState[str, int]
    last: ValueState[int]

    def on_switches(self, event: Switch, ctx: Context[Note]) -> None:
        self.settings[event.name] = event.on
        for _ in ctx.each_key():
            self.last.value = 100 // event.on

    def on_readings(self, event: Reading, ctx: Context[Note]) -> None:
        self.last.value = event.value


def test_a_failed_broadcast_event_leaves_rules_and_keys_as_they_were() -> None:
    switched = ProcessHarness(Switched())
    switched.feed([reading("a", NOON, 1), reading("b", NOON, 2)], "readings")
    switched.feed(Switch("x", 50), "switches")
    switched.feed([Switch("x", 0), Switch("y", 0)], "switches")

    assert len(switched.dead_letters()) == 2
    assert {key: switched.state_of(key)["last"] for key in "ab"} == {"a": 2, "b": 2}
    switched.feed(Switch("y", 25), "switches")
    assert switched.state_of("a")["last"] == 4


class MaybeNull(msgspec.Struct, frozen=True):
    sensor: str
    at: int


class NullKeys(KeyedProcess[MaybeNull, Note]):
    key = "sensor"
    time = "at"

    def on_event(self, event: MaybeNull, ctx: Context[Note]) -> None:
        ctx.emit(Note(event.sensor))


class NullKeysAside(NullKeys):
    dead_letter = True


def test_an_event_without_key_is_set_aside_where_that_is_allowed() -> None:
    aside = ProcessHarness(NullKeysAside())
    aside.feed([MaybeNull("a", NOON), MaybeNull(None, NOON)])  # type: ignore[arg-type]

    assert aside.outputs() == [Note("a")]
    assert [each.key for each in aside.dead_letters()] == [None]


@pytest.mark.parametrize("key", [1, 1.0, ("a",)])
def test_a_key_of_another_type_is_an_error_that_names_its_event(key: object) -> None:
    with pytest.raises(ProcessError, match="key of 'events' holds str"):
        ProcessHarness(NullKeys()).feed(MaybeNull(key, NOON))  # type: ignore[arg-type]


def test_an_event_of_another_class_is_refused() -> None:
    columns = Arrivals("events", [Note("x")], ["a"], [NOON])
    with pytest.raises(Misuse, match="input 'events' holds MaybeNull, not Note"):
        ProcessHarness(NullKeys()).feed_columns(columns)


def test_an_event_without_time_is_refused() -> None:
    columns = Arrivals("events", [MaybeNull("a", NOON)], ["a"], [None])  # type: ignore[list-item]
    with pytest.raises(Misuse, match="has an event whose time is None"):
        ProcessHarness(NullKeys()).feed_columns(columns)


@pytest.mark.parametrize("form", ["returns", "yields"])
@pytest.mark.parametrize("forgiving", [True, False])
def test_r19_a_handler_that_returns_its_result_is_refused(form: str, forgiving: bool) -> None:
    """Its rows would go nowhere, ever."""

    class Returning(KeyedProcess[Counted, Counted]):
        key = "name"
        time = "at"
        dead_letter = forgiving

        def on_event(self, event: Counted, ctx: Context[Counted]) -> Any:
            return event if form == "returns" else (each for each in [event])

    with pytest.raises(DeclarationError, match=rf"on_event {form} .* write ctx\.emit\(row\)"):
        ProcessHarness(Returning()).feed(Counted("a", 1))
