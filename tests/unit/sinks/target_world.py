"""A stream of fares with targets beside its table, written batch by batch, and their check."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from rivermark import Output, Stream, Table
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.check import CheckResult
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.checks.row_checks import TARGETS_HOLD
from rivermark.runtime.checkpoint.generation import open_generation
from rivermark.settings import Settings
from rivermark.sinks import Sink
from rivermark.sinks.output import OutputWriter
from tests.unit.sinks.conftest import FARES, NOON

SOURCE = Table(name="test/source", schema=FARES.schema, description="s", event_time="at")
TIMED = replace(FARES, event_time="at")


class World:
    """A stream of fares with its targets, written batch by batch."""

    def __init__(self, home: Path, *sinks: Sink) -> None:
        self.settings = Settings(home=home)
        self.lake: Lake = self.settings.lake()
        self.output = Output(TIMED, sinks=sinks)
        self.stream = Stream(
            name="test/fares",
            reads=(SOURCE,),
            build=lambda rows: rows,
            writes=(self.output,),
            lateness=timedelta(0),
            description="f",
            group="test",
        )
        self.origin = open_generation(self.lake, self.stream, 1).origin(self.stream, "run")
        create_table(self.lake, TIMED)
        self.batch = 0

    def write(self, *batches: pa.Table) -> None:
        with closing(OutputWriter(self.lake, self.output, self.origin)) as writer:
            for rows in batches:
                writer.write(rows, self.batch, {})
                self.batch += 1

    def check(self) -> CheckResult:
        [check] = [c for c in checks_of_stream(self.stream) if c.name == TARGETS_HOLD]
        return check.evaluate(self.settings, NOON)
