"""Sessions of a process are measured where days of a table are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from rivermark.process.instants import Millis, instant
from rivermark.process.keyed import KeyedProcess
from rivermark.process.spark.build import ProcessBuild
from rivermark.process.spark.meter import Meter, Metrics
from rivermark.process.windows.lifecycle import Windowed
from rivermark.process.windows.measure import SessionMeasure


@dataclass(frozen=True)
class Measured:
    """Makes the process, which reports of its sessions to a meter."""

    make: Callable[[], KeyedProcess[Any, Any]]
    meter: Meter
    begin: Millis
    until: Millis

    def __call__(self) -> KeyedProcess[Any, Any]:
        """The process, with a measure of its own."""
        process = self.make()
        if isinstance(process, Windowed):
            process.measure_by(SessionMeasure(self.begin, self.until, self._report))
        return process

    def _report(self, measured: dict[str, float]) -> None:
        self.meter.add(Metrics(gauges=measured))


def has_sessions(build: ProcessBuild) -> bool:
    """True if the process merges windows of event time: how long they last only the rows say."""
    made = build.make()
    return isinstance(made, Windowed) and made.windows.merging and made.windows.clock == "event"


def measured(build: ProcessBuild, meter: Meter, begin: datetime, until: datetime) -> ProcessBuild:
    """The same build, whose sessions are measured against the days [begin, until)."""
    return replace(build, make=Measured(build.make, meter, instant(begin), instant(until)))
