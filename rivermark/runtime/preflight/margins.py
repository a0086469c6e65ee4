"""Margins of streams whose process sets timers: how far beyond a day these reach."""

from __future__ import annotations

from collections.abc import Iterator

from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.stream import NO_MARGIN, Stream
from rivermark.process.spark import ProcessBuild


def timer_faults(stream: Stream) -> Iterator[DeclarationError]:
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
