"""What a process's class may declare, and what is refused when it is defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from rivermark.model.errors import DeclarationError
from rivermark.process import (
    TTL,
    Context,
    KeyedProcess,
    ListState,
    MapState,
    SideOutput,
    ValueState,
)
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import Note, Reading

T = TypeVar("T")
AN_HOUR = timedelta(hours=1)


class Opaque:
    """A class that no storage knows."""


class Left(msgspec.Struct):
    x: int


class Right(msgspec.Struct):
    y: int


class Remember(KeyedProcess[Reading, T], Generic[T]):
    """A base for others: its output type is left open."""

    key = "sensor"
    time = "at"
    last: ValueState[Reading]
    seen: MapState[int, T]

    def on_event(self, event: Reading, ctx: Context[T]) -> None:
        self.last.value = event


class RememberNotes(Remember[Note]):
    notes: ListState[Note]


def test_states_are_those_of_the_class_and_of_its_bases_in_order() -> None:
    shapes = {each.name: str(each) for each in RememberNotes.declaration.schema.states}

    assert shapes == {
        "last": "value of Reading",
        "seen": "map of int, Note",
        "notes": "list of Note",
    }


def test_a_base_with_open_types_declares_nothing_itself() -> None:
    assert not hasattr(Remember, "declaration")


def test_events_may_be_dataclasses() -> None:
    @dataclass(frozen=True)
    class Step:
        person: int
        at: datetime

    class Steps(KeyedProcess[Step, Note]):
        key = "person"
        time = "at"

        def on_event(self, event: Step, ctx: Context[Note]) -> None:
            ctx.emit(Note(ctx.time.isoformat()))

    harness = ProcessHarness(Steps())
    noon = datetime(2020, 1, 1, 12, tzinfo=UTC)

    assert harness.feed(Step(1, noon)) == [Note("2020-01-01T12:00:00+00:00")]


class Handled(KeyedProcess[Reading, Note]):
    """What the refused declarations below share."""

    key = "sensor"
    time = "at"

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        raise NotImplementedError


def refused(match: str) -> Any:
    return pytest.raises(DeclarationError, match=match)


@pytest.mark.parametrize(
    ("match", "annotations", "attributes"),
    [
        ("state 'odd': Opaque cannot be stored", {"odd": ValueState[Opaque]}, {}),
        ("state 'last' does not say what it holds", {"last": ValueState}, {}),
        ("state 'last' has no type: annotate it", {}, {"last": ValueState()}),
        ("must be tagged", {"side": ValueState[Left | Right]}, {}),
        ("a key of type float is not allowed", {"weights": MapState[float, int]}, {}),
        ("a state cannot be called 'version'", {"version": ValueState[int]}, {}),
        ("have one name", {"late": ValueState[int]}, {"late": SideOutput("late", Reading)}),
        (
            "have the same tag 'late'",
            {},
            {"late": SideOutput("late", Reading), "tardy": SideOutput("late", Reading)},
        ),
        ("a migration is given for 'lost'", {}, {"migrations": {"lost": max}}),
    ],
)
def test_what_cannot_work_is_refused_when_the_class_is_defined(
    match: str, annotations: dict[str, Any], attributes: dict[str, Any]
) -> None:
    with refused(match):
        type("Refused", (Handled,), {"__annotations__": annotations, **attributes})


def test_a_state_declared_again_with_another_type_is_refused() -> None:
    with refused("state 'last' is declared twice"):

        class Clash(RememberNotes):
            last: ValueState[int]  # type: ignore[assignment]


def test_a_type_that_exists_only_for_type_checkers_is_refused_with_a_reason() -> None:
    with refused("types of state must be names of the module"):

        class Missing(Handled):
            last: ValueState[NotImported]  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("match", "make"),
    [
        ("expected a name like 'late_fares'", lambda: SideOutput("Late fares!", Reading)),
        ("expected a name like 'late_fares'", lambda: SideOutput(5, Reading)),  # type: ignore[arg-type]
        ("side output 'late': 5 is not a class of rows", lambda: SideOutput("late", 5)),  # type: ignore[arg-type]
        ("a TTL must be a whole number of milliseconds above 0", lambda: TTL(timedelta(0))),
        ("a TTL's clock is 'event' or 'processing'", lambda: TTL(AN_HOUR, clock="wall")),  # type: ignore[arg-type]
    ],
)
def test_a_tag_or_a_life_that_cannot_be_is_refused(match: str, make: Callable[[], object]) -> None:
    with refused(match):
        make()
