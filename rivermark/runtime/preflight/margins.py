"""Whether a stream whose process sets timers says how far beyond a day these reach."""

from __future__ import annotations

from collections.abc import Iterator

from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.stream import NO_MARGIN, Stream
from rivermark.process.declaration.event_order import sets_event_timers
from rivermark.process.keyed import KeyedProcess
from rivermark.process.spark import ProcessBuild


def timer_faults(stream: Stream) -> Iterator[DeclarationError]:
    """A process that sets timers in event time, in a stream that says nothing of its margin."""
    build = stream.build
    if not isinstance(build, ProcessBuild) or stream.margin is not NO_MARGIN or not stream.days:
        return
    process = type(build.make())
    if sets_event_timers(process, KeyedProcess):
        yield DeclarationError(
            f"stream '{stream.name}': process '{process.__name__}' sets timers in event time, so "
            "results may lie beyond the day of their events; declare as `margin` how long after "
            "an event its last result may come, or timedelta(0) where that is the same day"
        ).at(place_of(stream))
