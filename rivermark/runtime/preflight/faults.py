"""Every fault of a stream's declaration, as errors that are collected and not raised."""

from __future__ import annotations

from collections.abc import Iterator

from rivermark.ingest.parse.contract_parser import contract_faults
from rivermark.ingest.parse.expressions import expression_faults
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.stream import NO_MARGIN, AnyStream, Ingest, Stream
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.preflight.builds import EmptyInputs, build_faults
from rivermark.runtime.preflight.suites import suite_faults

Faults = Iterator[DeclarationError]


def faults_without_spark(stream: AnyStream) -> Faults:
    """Faults of a stream's suites, its rules and readers in SQL, and its margin."""
    yield from suite_faults(stream)
    if isinstance(stream, Ingest):
        yield from contract_faults(stream.name, stream.contract)
    else:
        yield from _timer_faults(stream)


def faults_of(stream: AnyStream, inputs: EmptyInputs) -> Faults:
    """Faults that Spark finds in a stream's expressions and build, on empty tables."""
    if isinstance(stream, Ingest):
        yield from expression_faults(inputs.spark, stream.name, stream.contract)
    else:
        yield from build_faults(stream, inputs)


def _timer_faults(stream: Stream) -> Iterator[DeclarationError]:
    """A process with timers in event time, in a stream that says nothing of its margin.

    One that handles timers and says whether its events wait for them has such.
    """
    build = stream.build
    if not isinstance(build, ProcessBuild) or stream.margin is not NO_MARGIN or not stream.days:
        return
    process = type(build.make())
    is_library = process.on_timer.__module__.startswith("rivermark.")
    if process.declaration.has_on_timer and process.declaration.decided and not is_library:
        yield DeclarationError(
            f"stream '{stream.name}': process '{process.__name__}' sets timers in event time, so "
            "results may lie beyond the day of their events; declare as `margin` how long after "
            "an event its last result may come, or timedelta(0) where that is the same day"
        ).at(place_of(stream))
