"""Feeds of generated events that land whole, once, as the demo needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rivermark import Ingest
from rivermark.cli.demo_scene import LandedInput
from simulator.demo_day import DemoDay
from simulator.feeds import Feed
from simulator.landing.once import land_parts_once


def land_generated(
    landing: Path,
    what: Mapping[Ingest, str],
    feeds: Callable[[datetime], Sequence[Feed]],
    every: timedelta,
) -> Iterator[LandedInput]:
    """Land the feeds of the demo's day from noon on, a file for each `every` of their arrival.

    `what` names the input of each ingest, in words.
    """
    folders = [landing / ingest.source.name for ingest in what]
    of_day = DemoDay.of(folders, "generated", datetime.now(UTC))
    for feed in feeds(of_day.noon):
        lines = (feed.lines(parcel) for parcel in feed.parcels(every))
        done = land_parts_once(landing / feed.ingest.source.name, of_day.stem, lines)
        yield LandedInput(what[feed.ingest], done.files, done.rows, done.new_files)
