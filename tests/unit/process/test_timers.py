"""The calendar of a bucket, against the plainest model of it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rivermark.process.instants import NEVER
from rivermark.process.timers import Calendar

instants = st.integers(0, 12)
keys = st.integers(0, 14)


class Current:
    key: Any = None


class CalendarMachine(RuleBasedStateMachine):
    """Registers, deletes and takes as a set of (instant, key) would."""

    def __init__(self) -> None:
        super().__init__()
        self.current = Current()
        self.calendar = Calendar(self.current)
        self.model: set[tuple[int, int]] = set()

    @rule(at=instants, key=keys)
    def register(self, at: int, key: int) -> None:
        self.current.key = key
        self.calendar.register(at)
        self.model.add((at, key))

    @rule(at=instants, key=keys)
    def delete(self, at: int, key: int) -> None:
        self.current.key = key
        assert self.calendar.delete(at) == ((at, key) in self.model)
        self.model.discard((at, key))

    @rule(limit=instants)
    def take(self, limit: int) -> None:
        due = sorted({at for at, _ in self.model if at <= limit})
        taken = self.calendar.take(limit)
        if not due:
            assert taken is None
            return
        assert taken is not None
        assert taken[0] == due[0]
        assert set(taken[1]) == {key for at, key in self.model if at == due[0]}
        self.model = {each for each in self.model if each[0] != due[0]}

    @rule(key=keys)
    def list(self, key: int) -> None:
        self.current.key = key
        assert self.calendar.list() == tuple(sorted(at for at, k in self.model if k == key))

    @rule()
    def store(self) -> None:
        self.calendar = Calendar(self.current, self.calendar.due, self.calendar.next)

    @invariant()
    def holds_the_same_timers(self) -> None:
        assert set(self.calendar) == self.model
        assert len(self.calendar) == len(self.model)
        assert self.calendar.next <= min((at for at, _ in self.model), default=NEVER)


TestCalendar = CalendarMachine.TestCase
TestCalendar.settings = settings(stateful_step_count=30)


def test_an_instant_shared_by_many_keys_costs_each_of_them_the_same() -> None:
    current = Current()
    calendar = Calendar(current)
    for key in range(100_000):
        current.key = key
        calendar.register(1_000)
    for key in range(0, 100_000, 2):
        current.key = key
        assert calendar.delete(1_000)

    taken = calendar.take(1_000)
    assert taken is not None
    assert [*taken[1]] == [*range(1, 100_000, 2)]
