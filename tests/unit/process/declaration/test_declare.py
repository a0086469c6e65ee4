"""What a process's class may declare, and what is refused when it is defined."""

from __future__ import annotations

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


def test_a_state_of_a_class_that_cannot_be_stored_is_refused() -> None:
    with refused("state 'odd': Opaque cannot be stored"):

        class Odd(Handled):
            odd: ValueState[Opaque]


def test_a_state_that_does_not_say_what_it_holds_is_refused() -> None:
    with refused(r"state 'last' does not say what it holds"):

        class Bare(Handled):
            last: ValueState


def test_a_state_without_annotation_is_refused() -> None:
    with refused("state 'last' has no type: annotate it"):

        class Unannotated(Handled):
            last = ValueState()  # type: ignore[var-annotated]


def test_structs_in_a_union_need_tags() -> None:
    with refused("must be tagged"):

        class Either(Handled):
            side: ValueState[Left | Right]


def test_a_map_with_keys_that_are_not_equal_to_themselves_is_refused() -> None:
    with refused("a key of type float is not allowed"):

        class ByWeight(Handled):
            weights: MapState[float, int]


def test_a_state_named_like_something_every_process_has_is_refused() -> None:
    with refused("a state cannot be called 'version'"):

        class Clash(Handled):
            version: ValueState[int]  # type: ignore[assignment,misc]


def test_a_state_and_a_side_output_of_one_name_are_refused() -> None:
    with refused("have one name"):

        class Clash(Handled):
            late: ValueState[int] = SideOutput("late", Reading)  # type: ignore[assignment]


def test_a_state_declared_again_with_another_type_is_refused() -> None:
    with refused("state 'last' is declared twice"):

        class Clash(RememberNotes):
            last: ValueState[int]  # type: ignore[assignment]


def test_a_type_that_exists_only_for_type_checkers_is_refused_with_a_reason() -> None:
    with refused("types of state must be names of the module"):

        class Missing(Handled):
            last: ValueState[NotImported]  # type: ignore[name-defined]  # noqa: F821


def test_two_side_outputs_of_one_tag_are_refused() -> None:
    with refused("have one tag, 'late'"):

        class Clash(Handled):
            late = SideOutput("late", Reading)
            tardy = SideOutput("late", Reading)


def test_a_tag_that_cannot_name_a_table_is_refused() -> None:
    with refused("expected a name like 'late_fares'"):
        SideOutput("Late fares!", Reading)


def test_a_life_of_no_length_is_refused() -> None:
    with refused("a TTL must be a whole number of milliseconds above 0"):
        TTL(timedelta(0))


def test_a_life_on_an_unknown_clock_is_refused() -> None:
    with refused("a TTL's clock is 'event' or 'processing'"):
        TTL(timedelta(hours=1), clock="wall")  # type: ignore[arg-type]


def test_a_migration_for_no_state_is_refused() -> None:
    with refused("a migration is given for 'lost'"):

        class Migrates(Handled):
            migrations = {"lost": lambda value, version: value}  # noqa: RUF012
