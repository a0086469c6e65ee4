"""Which changes of a declaration fit stored state, and what is said of those that do not."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from rivermark.process import TTL, Context, KeyedProcess, ListState, MapState, ValueState
from rivermark.process.errors import StateUnreadable
from rivermark.process.evolution.compatibility import check_compatible
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import Note, Reading, reading


class Trip(msgspec.Struct, array_like=True):
    taxi: int
    fare: float
    driver: str = ""


class Shorter(msgspec.Struct, array_like=True):
    taxi: int
    driver: str = ""


class Empty(KeyedProcess[Reading, Note]):
    """What the versions share."""

    key = "sensor"
    time = "at"

    def on_event(self, event: Reading, ctx: Context[Note]) -> None: ...


class V1(Empty):
    trip: ValueState[Trip]
    trips: ListState[Trip]
    by_taxi: MapState[int, Trip]
    old: ValueState[int]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        self.old.value = 1


class V2(V1):
    version = 2


def problems(old: type[KeyedProcess[Any, Any]], new: type[KeyedProcess[Any, Any]]) -> list[str]:
    declared = new.declaration
    found = check_compatible(
        old.declaration.schema,
        declared.schema,
        migrated=declared.migrations,
        forgotten=declared.forgets,
    )
    return [str(each) for each in found]


def test_the_same_declaration_has_no_problems_and_one_fingerprint() -> None:
    class Again(V1): ...

    Again.declaration = V1.declaration
    assert problems(V1, V1) == []
    assert V1.declaration.schema.fingerprint() == Again.declaration.schema.fingerprint()
    assert V1.declaration.schema.fingerprint() != V2.declaration.schema.fingerprint()


def test_a_removed_state_is_refused_unless_it_is_forgotten() -> None:
    class Removed(Empty):
        trip: ValueState[Trip]
        trips: ListState[Trip]
        by_taxi: MapState[int, Trip]

    assert problems(V1, Removed) == [
        "state 'old': (value of int) is no longer declared; declare it, or allow its loss with "
        "forgets = ('old',)"
    ]
    first = ProcessHarness(V1())
    first.feed(reading("a"))
    with pytest.raises(StateUnreadable, match="state of version 1:\n- state 'old'"):
        ProcessHarness(Removed()).restore(first.state)


def test_a_removed_field_is_refused_unless_it_is_forgotten() -> None:
    class Holds(Empty):
        trip: ValueState[Trip]

    class Refused(Empty):
        trip: ValueState[Shorter]

    class Allowed(Refused):
        forgets = ("trip.fare",)

    found = problems(Holds, Refused)
    assert [each.split(":")[0] for each in found] == ["state 'trip.fare'"]
    assert problems(Holds, Allowed) == []


class NeedsMore(msgspec.Struct):
    taxi: int
    colour: str


class OneField(msgspec.Struct):
    taxi: int


def test_an_added_field_without_default_is_refused() -> None:
    class Before(Empty):
        trip: ValueState[OneField]

    class After(Empty):
        trip: ValueState[NeedsMore]

    assert problems(Before, After) == [
        "state 'trip.colour': (str) is new and has no default; give a migration: "
        "migrations = {'trip': ...}"
    ]


@pytest.mark.parametrize(
    ("before", "after", "fits"),
    [
        (int, float, True),
        (float, int, False),
        (int, int | None, True),
        (int | None, int, False),
        (int, int | str, True),
        (int | str, str, False),
        (int, Decimal, False),
        (list[int], list[float], True),
        (list[int], tuple[int, ...], True),
        (tuple[int, int], tuple[int, int, int], False),
        (dict[str, int], dict[str, float], True),
        (dict[str, int], dict[int, int], False),
        (int, Any, True),
    ],
)
def test_a_type_may_change_to_one_that_takes_in_the_old_values(
    before: Any, after: Any, fits: bool
) -> None:
    def holding(of: Any) -> type[KeyedProcess[Any, Any]]:
        namespace = {"__annotations__": {"held": ValueState[of]}, "__module__": __name__}
        made: type[KeyedProcess[Any, Any]] = type("Holding", (Empty,), namespace)
        return made

    assert (problems(holding(before), holding(after)) == []) == fits


def test_another_key_kind_or_life_cannot_be_taken_over() -> None:
    class Valued(Empty):
        held: ValueState[int]

    class Listed(Empty):
        held: ListState[int]

    class Mortal(Empty):
        held: ValueState[int] = ValueState(ttl=TTL(timedelta(hours=1)))

    class OtherKey(Empty):
        key = "value"
        held: ValueState[int]

    assert "was a value of int and is a list of int" in problems(Valued, Listed)[0]
    assert "is a value of int with a life in event time" in problems(Valued, Mortal)[0]
    assert problems(Valued, OtherKey)[0].startswith("the key: was str and is int")


def test_state_of_newer_code_is_refused() -> None:
    assert "the version: was 2 and is 1" in " ".join(problems(V2, V1))
