"""Which tables of process functions have to hold rows: nothing to alert of is no fault."""

from __future__ import annotations

from typing import Final

from assets.topology import TOPOLOGY
from rivermark import Stream
from rivermark.process.spark import ProcessBuild
from rivermark.quality.suites import suites_of

FILLED: Final = {"taxi/longest_rides"}
"""Each ride that ends first in its cell and day makes a row."""


def test_no_table_of_alerts_fails_for_being_empty() -> None:
    processes = [
        stream
        for stream in TOPOLOGY.streams
        if isinstance(stream, Stream) and isinstance(stream.build, ProcessBuild)
    ]
    suites = [each for stream in processes for each in suites_of(stream)]
    assert {table.name for table, suite in suites if not suite.may_be_empty} == FILLED
