"""Who is woken when: a first batch that has to be alone waits for the others, and they for it."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from rivermark.runtime.pace import Inputs, Pace
from rivermark.runtime.pacing import LONG_LOOK, Pacer, _Paced, turns_on
from rivermark.runtime.query import QueryHost


class Host:
    """A query as the pacer sees it."""

    def __init__(self, *, alone: bool = False, takes_turns: bool = True) -> None:
        self.alone_at_first = alone
        self.takes_turns = takes_turns
        self.batches = 0
        self.woken = 0
        self.is_active = False
        self.tick = 0
        self.left = True

    def ticks(self) -> int:
        """When time alone was something to look at."""
        return self.tick

    def goes_on(self) -> bool:
        """Whether its last batch left something."""
        return self.left

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


def paced(pacer: Pacer, host: Host) -> _Paced:
    """A query at rest whose input never pauses."""
    pace = Pace(least=0.0, begun=-100.0, versions=(0,))
    pace.ended(-99.0, worked=False)
    found = _Paced(cast(QueryHost, host), cast(Inputs, Commits()), pace)
    pacer._paced.append(found)
    return found


def step(pacer: Pacer, *each: _Paced) -> None:
    """One look at each, long after the last."""
    for found in each:
        found.pace.begun -= 100.0
        found.pace.rests_until = -100.0
        pacer._step(found)


def test_a_first_batch_that_has_to_be_alone_waits_for_the_others_and_they_for_it() -> None:
    pacer, other, process = Pacer(), Host(), Host(alone=True)
    a, b = paced(pacer, other), paced(pacer, process)

    step(pacer, a, b)
    assert (other.woken, process.woken) == (1, 0), "the other is still at its batch"
    other.end()
    step(pacer, a, b)
    step(pacer, b, a)
    assert (other.woken, process.woken) == (1, 1), "the process begins, the other waits"
    process.end()
    step(pacer, b, a)
    assert other.woken == 2, "and goes on when that first batch is done"


def test_later_batches_run_beside_each_other() -> None:
    pacer, other, process = Pacer(), Host(), Host(alone=True)
    a, b = paced(pacer, other), paced(pacer, process)
    step(pacer, b)
    process.end()
    step(pacer, b)

    step(pacer, b, a)

    assert (other.woken, process.woken) == (1, 2)


def test_a_query_that_is_gone_holds_nobody_up() -> None:
    class Gone(Host):
        def wake(self) -> Any:
            raise RuntimeError("stopped")

    pacer, other, gone = Pacer(), Host(), Gone(alone=True)
    a, b = paced(pacer, other), paced(pacer, gone)
    try:
        step(pacer, b)
    except RuntimeError:
        pacer._release(b)

    step(pacer, a)

    assert other.woken == 1


def test_a_query_by_the_clock_looks_when_a_timer_is_due_and_rests_otherwise() -> None:
    pacer, clocked = Pacer(), Host()
    found = paced(pacer, clocked)
    found.inputs = cast(Inputs, Silence())

    def look() -> None:
        """After its rest, and no longer than that."""
        found.pace.begun, found.pace.rests_until = time.monotonic() - 1.0, 0.0
        pacer._step(found)

    step(pacer, found)
    clocked.end()
    look()
    look()
    assert clocked.woken == 2, "its batch took rows: what they allow to close comes next"
    clocked.left = False
    clocked.end()
    look()
    look()
    assert clocked.woken == 2, "nothing is left, though every look makes a batch"

    clocked.tick = 1
    look()
    assert clocked.woken == 3


def test_few_are_at_work_at_a_time_and_whoever_waits_longest_is_next() -> None:
    pacer = Pacer(turns=2)
    hosts = [Host() for _ in range(4)]
    each = [paced(pacer, host) for host in hosts]

    def look() -> None:
        """As the pacer's thread does, the ones that wait first."""
        for found in sorted(each, key=lambda e: e.waits_since):
            found.pace.rests_until = -100.0
            pacer._step(found)

    look()
    assert [h.woken for h in hosts] == [1, 1, 0, 0]
    hosts[1].end()
    time.sleep(0.06)
    look()
    look()
    assert [h.woken for h in hosts] == [1, 1, 1, 0], "and not the one that was just at work"
    each[0].pace.begun -= LONG_LOOK
    look()
    assert [h.woken for h in hosts] == [1, 1, 1, 1], "one that works for long holds nobody up"


def test_an_ingest_begins_when_it_is_due() -> None:
    pacer, stream, ingest = Pacer(turns=1), Host(), Host(takes_turns=False)
    a, b = paced(pacer, stream), paced(pacer, ingest)
    c = paced(pacer, Host())

    step(pacer, a)
    a.pace.begun = time.monotonic()
    step(pacer, b)
    assert (stream.woken, ingest.woken) == (1, 1)
    a.pace.begun = time.monotonic()
    step(pacer, c)
    assert cast(Host, c.host).woken == 0, "the stream is at work"
    stream.end()
    step(pacer, a)
    step(pacer, c)
    assert stream.woken + cast(Host, c.host).woken == 2


@pytest.mark.parametrize(
    ("master", "turns"),
    [("local[2]", 2), ("local", 2), ("local[8, 3]", 8), ("spark://host:7077", None)],
)
def test_turns_are_of_a_single_machine(master: str, turns: int | None) -> None:
    assert turns_on(master) == turns
