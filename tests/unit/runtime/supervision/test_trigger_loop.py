"""Who is woken when: a first batch that has to be alone waits for the others, and they for it."""

from __future__ import annotations

import time
from typing import Any, cast

from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.trigger_policy import Inputs, Trigger, TriggerPolicy
from rivermark.runtime.supervision.trigger_loop import TriggerLoop, _Triggered


class Timer(Trigger):
    """A trigger whose answers a test sets."""

    tick = 0
    left = True

    def timer(self) -> int:
        """When time alone was a reason to look."""
        return self.tick

    def again(self) -> bool:
        """Whether its last batch left something."""
        return self.left


class Host:
    """A query as the loop sees it."""

    def __init__(self, *, alone: bool = False) -> None:
        self.trigger = Timer(0.0, first_batch_alone=alone)
        self.batches = 0
        self.woken = 0
        self.is_active = False
        self.busy = False

    def wake(self) -> None:
        """Begin a batch."""
        self.woken += 1
        self.is_active = True

    def end(self) -> None:
        """End it."""
        self.batches += 1
        self.is_active = False

    def active(self) -> bool:
        """Whether it is at a batch."""
        return self.is_active


class Commits:
    """Inputs with something new at every look."""

    local = True

    def __init__(self) -> None:
        self.version = 0

    def newest(self) -> tuple[int, ...]:
        """One version more each time."""
        self.version += 1
        return (self.version,)


class Silence:
    """Inputs with nothing new."""

    local = True

    def newest(self) -> tuple[int, ...]:
        """The same each time."""
        return (0,)


def query(loop: TriggerLoop, host: Host) -> _Triggered:
    """A query at rest whose input never pauses."""
    policy = TriggerPolicy(min_interval=0.0, started=-100.0, versions=(0,))
    policy.ended(-99.0, had_batch=False)
    inputs = cast(Inputs, Commits())
    found = _Triggered(cast(QueryHost, host), inputs, policy, newest=(0,), taken=(0,))
    loop._queries.append(found)
    return found


def step(loop: TriggerLoop, *each: _Triggered) -> None:
    """One look at each, long after the last."""
    for found in each:
        found.policy.started -= 100.0
        found.policy.idle_until = found.policy.rested = -100.0
        loop._step(found)


def test_a_first_batch_that_has_to_be_alone_waits_for_the_others_and_they_for_it() -> None:
    loop, other, process = TriggerLoop(), Host(), Host(alone=True)
    a, b = query(loop, other), query(loop, process)

    step(loop, a, b)
    assert (other.woken, process.woken) == (1, 0), "the other is still at its batch"
    other.end()
    step(loop, a, b)
    step(loop, b, a)
    assert (other.woken, process.woken) == (1, 1), "the process begins, the other waits"
    process.end()
    step(loop, b, a)
    assert other.woken == 2, "and goes on when that first batch is done"


def test_later_batches_run_beside_each_other() -> None:
    loop, other, process = TriggerLoop(), Host(), Host(alone=True)
    a, b = query(loop, other), query(loop, process)
    step(loop, b)
    process.end()
    step(loop, b)

    step(loop, b, a)

    assert (other.woken, process.woken) == (1, 2)


def test_commits_that_let_a_window_close_do_not_wait_for_the_trigger() -> None:
    loop, host = TriggerLoop(), Host()
    found, answers = query(loop, host), [False, True]
    host.trigger.closes = lambda: answers.pop(0)
    found.policy.started = time.monotonic() - 1.0
    found.policy.rested, found.policy.idle_until = 0.0, time.monotonic() + 100.0

    loop._step(found)
    assert (host.woken, answers) == (0, [True]), "these close nothing"
    loop._step(found)
    assert host.woken == 1, "those behind them do"


def test_a_query_that_is_gone_holds_nobody_up() -> None:
    class Gone(Host):
        def wake(self) -> Any:
            raise RuntimeError("stopped")

    loop, other, gone = TriggerLoop(), Host(), Gone(alone=True)
    a, b = query(loop, other), query(loop, gone)
    try:
        step(loop, b)
    except RuntimeError:
        loop._release(b)

    step(loop, a)

    assert other.woken == 1


def test_a_query_by_the_clock_looks_when_a_timer_is_due_and_rests_otherwise() -> None:
    loop, clocked = TriggerLoop(), Host()
    found = query(loop, clocked)
    found.inputs = cast(Inputs, Silence())

    def look() -> None:
        """After its rest, and no longer than that."""
        found.policy.started = time.monotonic() - 1.0
        found.policy.idle_until = found.policy.rested = 0.0
        loop._step(found)

    step(loop, found)
    clocked.end()
    look()
    look()
    assert clocked.woken == 2, "its batch took rows: what they allow to close comes next"
    clocked.trigger.left = False
    clocked.end()
    look()
    look()
    assert clocked.woken == 2, "nothing is left, though every look makes a batch"

    clocked.trigger.tick = 1
    look()
    assert clocked.woken == 3


def test_r20_what_waits_of_a_query_that_hangs_are_the_commits_since_its_last_batch() -> None:
    loop, host = TriggerLoop(), Host()
    found = query(loop, host)
    step(loop, found)
    host.end()
    step(loop, found)
    step(loop, found)
    assert host.woken == 2
    before = loop.unread(cast(QueryHost, host))

    for _ in range(5):
        found.checked_at = 0.0
        loop._step(found)

    assert host.woken == 2, "it hangs in its second batch"
    assert loop.unread(cast(QueryHost, host)) == before + 5
    host.end()
    step(loop, found)
    assert loop.unread(cast(QueryHost, host)) < before + 5
