"""Which streams of a bounded run start next, without Spark."""

from __future__ import annotations

import pytest

from rivermark import Topology
from rivermark.runtime.supervision.run import Schedule
from tests.unit.model.test_topology import BEST, CLEAN, HOURS, RIDES

DIAMOND = {
    "source": frozenset[str](),
    "left": frozenset({"source"}),
    "right": frozenset({"source"}),
    "join": frozenset({"left", "right"}),
    "other": frozenset[str](),
}


def schedule(*alone: str) -> Schedule:
    return Schedule(tuple(DIAMOND), DIAMOND, frozenset(alone))


def test_only_streams_of_the_run_hold_each_other_up() -> None:
    topology = Topology([BEST, HOURS, CLEAN, RIDES])

    whole = Schedule.of(topology, topology.streams)
    part = Schedule.of(topology, [BEST, CLEAN])

    assert whole.order == tuple(s.name for s in (RIDES, CLEAN, HOURS, BEST))
    assert whole.next() == (RIDES.name,)
    assert part.next() == (CLEAN.name,), "BEST reads it through a stream that is not run"
    assert part.finished([CLEAN.name]).next() == (BEST.name,)
    assert Schedule.of(topology, []).done


def test_a_stream_starts_when_all_that_it_reads_have_ended() -> None:
    first = schedule()
    assert first.next() == ("source", "other")

    running = first.started(first.next())
    assert running.next() == ()

    after_source = running.finished(["source"])
    assert after_source.next() == ("left", "right")

    one_side = after_source.started(["left", "right"]).finished(["left"])
    assert one_side.next() == ()
    assert one_side.finished(["right"]).next() == ("join",)
    assert first.next() == ("source", "other"), "a schedule is a value"


def test_a_run_is_done_when_every_stream_has_ended() -> None:
    assert not schedule().finished(["source", "left", "right", "other"]).done
    assert schedule().finished(DIAMOND).done


@pytest.mark.parametrize(
    ("running", "started"),
    [((), ("left", "right")), (("other", "more"), ("left",)), (("other", "more", "third"), ())],
)
def test_streams_whose_first_batch_must_be_alone_start_beside_few_others(
    running: tuple[str, ...], started: tuple[str, ...]
) -> None:
    ready = schedule("left", "right").started(["source", *running]).finished(["source"])
    if "other" not in running:
        ready = ready.finished(["other"])

    assert ready.next() == started


def test_other_streams_start_before_those_whose_first_batch_must_be_alone() -> None:
    ready = schedule("left", "other").finished(["source"])

    assert ready.next() == ("right",)
    assert ready.started(["right"]).next() == ("left", "other")
    assert ready.started(["right", "left"]).next() == ("other",)
