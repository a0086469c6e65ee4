"""All streams together: names, order, circles."""

from __future__ import annotations

import pytest

from rivermark.model.errors import DeclarationError, UnknownStream
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from tests.unit.model.declared import MINUTE, ingest, stream, table

RIDES = ingest()
CLEAN = stream("test/clean", RIDES, volume="events")
HOURS = stream("test/hours", CLEAN)
BEST = stream("test/best", HOURS, CLEAN, group="other")


def test_each_stream_comes_after_what_it_reads_whatever_the_order_given() -> None:
    orders: list[list[AnyStream]] = [[BEST, HOURS, CLEAN, RIDES], [RIDES, BEST, CLEAN, HOURS]]
    for given in orders:
        found = [s.name for s in Topology(given).streams]
        assert found == ["test/rides", "test/clean", "test/hours", "test/best"]


def test_two_streams_of_one_name_or_one_table_are_refused() -> None:
    with pytest.raises(DeclarationError, match="two streams are named 'test/hours'"):
        Topology([HOURS, HOURS])
    other = stream("test/other", writes=table("test/rides_late"))
    with pytest.raises(DeclarationError, match="two streams write table 'test/rides_late'"):
        Topology([RIDES, other])


def test_streams_that_read_in_a_circle_are_refused() -> None:
    first = stream("test/first", table("test/second"), lateness=MINUTE)
    second = stream("test/second", table("test/first"), lateness=MINUTE)
    with pytest.raises(DeclarationError, match="reads itself in a circle"):
        Topology([first, second])


def test_a_table_looked_up_whole_counts_as_read() -> None:
    joined = stream("test/joined", RIDES, static=(HOURS,))
    topology = Topology([joined, HOURS, CLEAN, RIDES])

    assert topology.upstreams(joined) == [RIDES, HOURS]
    assert topology.streams[-1] is joined


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    topology = Topology([HOURS, CLEAN, RIDES])

    assert topology.named("test/hours") is HOURS
    with pytest.raises(UnknownStream, match="there are: test/clean, test/hours, test/rides"):
        topology.named("test/hour")
    assert topology.table("test/rides_raw") == RIDES.raw
    with pytest.raises(UnknownStream, match="no table is named 'test/raw'"):
        topology.table("test/raw")
    assert topology.writer(RIDES.late) is RIDES
    assert topology.writer(table("test/nobody")) is None


def test_groups_hold_their_streams_in_order() -> None:
    assert Topology([BEST, HOURS, CLEAN, RIDES]).groups() == {
        "test": (RIDES, CLEAN, HOURS),
        "other": (BEST,),
    }
