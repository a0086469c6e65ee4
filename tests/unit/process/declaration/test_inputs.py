"""The inputs that a process's class may declare, and what is refused when it is defined."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rivermark.model.errors import DeclarationError
from rivermark.process import Broadcast, BroadcastState, Context, Input, KeyedProcess, Misuse, on
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import Note, Reading, reading


class MaybeKeyed(msgspec.Struct):
    sensor: str | None
    weight: float = 0.0
    at: datetime = datetime(2020, 1, 1, tzinfo=UTC)
    when: str = ""


class Handled(KeyedProcess[Reading, Note]):
    """What the refused declarations below share."""

    key = "sensor"
    time = "at"

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        raise NotImplementedError


def refused(match: str) -> Any:
    return pytest.raises(DeclarationError, match=match)


def test_a_process_without_types_is_refused() -> None:
    with refused(r"does not say what it reads and writes"):

        class Untyped(KeyedProcess):
            key = "sensor"


def test_a_process_without_key_is_refused() -> None:
    with refused("has no key"):

        class Keyless(KeyedProcess[Reading, Note]):
            def on_event(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_a_process_without_handler_is_refused() -> None:
    with refused("has no method on_event"):

        class Idle(KeyedProcess[Reading, Note]):
            key = "sensor"


def test_a_key_that_is_no_field_is_refused_with_the_fields_there_are() -> None:
    with refused("Reading has no field 'sensr'; it has: sensor, at, value"):

        class Misspelt(Handled):
            key = "sensr"


@pytest.mark.parametrize(("field", "reason"), [("sensor", "none [|] str"), ("weight", "float")])
def test_a_key_that_may_be_null_or_a_float_is_refused(field: str, reason: str) -> None:
    with refused(f"a key of type ({reason}) is not allowed"):

        class BadKey(KeyedProcess[MaybeKeyed, Note]):
            key = field

            def on_event(self, event: MaybeKeyed, ctx: Context[Note]) -> None: ...


def test_an_event_time_that_is_no_time_is_refused() -> None:
    with refused("event time 'when' is str, not a datetime or integer milliseconds"):

        class BadTime(KeyedProcess[MaybeKeyed, Note]):
            key = "at"
            time = "when"

            def on_event(self, event: MaybeKeyed, ctx: Context[Note]) -> None: ...


def test_a_key_function_must_say_what_it_returns() -> None:
    with refused("the key function must say what it returns"):

        class Unsaid(Handled):
            key = lambda event: event.sensor  # type: ignore[assignment]  # noqa: E731


def test_event_time_order_needs_an_event_time() -> None:
    with refused("input 'events' has none"):

        class Timeless(Handled):
            time = None  # type: ignore[assignment]
            order = "event_time"


def test_holding_needs_event_time_order() -> None:
    with refused("that is for order"):

        class Held(Handled):
            hold = True


def test_an_input_that_nobody_handles_is_refused() -> None:
    with refused("input 'controls' has no handler"):

        class Half(KeyedProcess[Reading, Note]):
            readings = Input(Reading, key="sensor", time="at")
            controls = Input(Reading, key="sensor", time="at", control=True)

            def on_readings(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_a_handler_of_no_input_is_refused() -> None:
    with refused("method 'on_contols' handles an input 'contols' that is not declared"):

        class Misspelt(KeyedProcess[Reading, Note]):
            controls = Input(Reading, key="sensor", time="at")

            def on_contols(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_two_handlers_of_one_input_are_refused() -> None:
    with refused("input 'readings' has two handlers"):

        class Twice(KeyedProcess[Reading, Note]):
            readings = Input(Reading, key="sensor", time="at")

            def on_readings(self, event: Reading, ctx: Context[Note]) -> None: ...

            @on("readings")
            def again(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_inputs_must_have_one_type_of_key() -> None:
    with refused("inputs must have one type of key, but 'right' has int and 'left' has str"):

        class Mixed(KeyedProcess[Reading, Note]):
            left = Input(Reading, key="sensor", time="at")
            right = Input(Reading, key="value", time="at")

            def on_left(self, event: Reading, ctx: Context[Note]) -> None: ...
            def on_right(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_broadcast_state_that_nothing_can_write_is_refused() -> None:
    with refused("nothing can write broadcast state 'rules'"):

        class Unwritten(Handled):
            rules: BroadcastState[str, int]


def test_a_process_with_broadcast_inputs_alone_is_refused() -> None:
    with refused("has no keyed input"):

        class OnlyRules(KeyedProcess[Reading, Note]):
            rules = Broadcast(Reading)

            def on_rules(self, event: Reading, ctx: Context[Note]) -> None: ...


def test_the_harness_takes_a_key_function_and_finds_out_when_it_is_not_deterministic() -> None:
    counter = iter(range(100))

    def next_key(event: Reading) -> int:
        return next(counter)

    class Unsteady(Handled):
        key = next_key  # type: ignore[assignment]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None: ...

    with pytest.raises(Misuse, match="the key of input 'events' is not deterministic"):
        ProcessHarness(Unsteady()).feed(reading())
