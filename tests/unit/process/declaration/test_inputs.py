"""The inputs that a process's class may declare, and what is refused when it is defined."""

from __future__ import annotations

from datetime import UTC, datetime
from types import new_class
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


def handler(self: Any, event: Any, ctx: Context[Note]) -> None: ...


class Handled(KeyedProcess[Reading, Note]):
    """What some of the refused declarations below share."""

    key = "sensor"
    time = "at"
    on_event = handler


def marked(self: Any, event: Any, ctx: Context[Note]) -> None: ...


OPEN = KeyedProcess[Reading, Note]
MAYBE = KeyedProcess[MaybeKeyed, Note]
BY_SENSOR = Input(Reading, key="sensor", time="at")


@pytest.mark.parametrize(
    ("match", "base", "attributes"),
    [
        (r"does not say what it reads and writes", KeyedProcess, {"key": "sensor"}),
        ("has no key", OPEN, {"on_event": handler}),
        ("has no method on_event", OPEN, {"key": "sensor"}),
        (
            "Reading has no field 'sensr'; it has: sensor, at, value",
            Handled,
            {"key": "sensr"},
        ),
        (
            "a key of type (none [|] str) is not allowed",
            MAYBE,
            {"key": "sensor", "on_event": handler},
        ),
        ("a key of type (float) is not allowed", MAYBE, {"key": "weight", "on_event": handler}),
        (
            "event time 'when' is str, not a datetime or integer milliseconds",
            MAYBE,
            {"key": "at", "time": "when", "on_event": handler},
        ),
        (
            "the key function must say what it returns",
            Handled,
            {"key": lambda event: event.sensor},
        ),
        ("input 'events' has none", Handled, {"time": None, "order": "event_time"}),
        ("which needs order", Handled, {"hold": True, "order": "arrival"}),
        (
            "input 'controls' has no handler",
            OPEN,
            {
                "readings": BY_SENSOR,
                "controls": Input(Reading, key="sensor", time="at", control=True),
                "on_readings": handler,
            },
        ),
        (
            "method 'on_contols' handles an input 'contols' that is not declared",
            OPEN,
            {"controls": BY_SENSOR, "on_contols": handler},
        ),
        (
            "input 'readings' has two handlers",
            OPEN,
            {"readings": BY_SENSOR, "on_readings": handler, "again": on("readings")(marked)},
        ),
        (
            "inputs must have one type of key, but 'right' has int and 'left' has str",
            OPEN,
            {
                "left": BY_SENSOR,
                "right": Input(Reading, key="value", time="at"),
                "on_left": handler,
                "on_right": handler,
            },
        ),
        (
            "nothing can write broadcast state 'rules'",
            Handled,
            {"__annotations__": {"rules": BroadcastState[str, int]}},
        ),
        ("has no keyed input", OPEN, {"rules": Broadcast(Reading), "on_rules": handler}),
    ],
)
def test_what_cannot_work_is_refused_when_the_class_is_defined(
    match: str, base: Any, attributes: dict[str, Any]
) -> None:
    with pytest.raises(DeclarationError, match=match):
        new_class("Refused", (base,), exec_body=lambda namespace: namespace.update(attributes))


def test_the_harness_takes_a_key_function_and_finds_out_when_it_is_not_deterministic() -> None:
    counter = iter(range(100))

    def next_key(event: Reading) -> int:
        return next(counter)

    class Unsteady(Handled):
        key = next_key  # type: ignore[assignment]

        def on_event(self, event: Reading, ctx: Context[Note]) -> None: ...

    with pytest.raises(Misuse, match="the key of input 'events' is not deterministic"):
        ProcessHarness(Unsteady()).feed(reading())
