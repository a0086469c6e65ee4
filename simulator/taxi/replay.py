"""A month of TLC trips, landed again as the live stream that it once was."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from rivermark.testing.landing import Landed
from simulator.landing.folder import LandingFolder
from simulator.landing.json_lines import json_line
from simulator.landing.pace import Pace, Paced, Progress, land_at_pace
from simulator.landing.parcels import Parcel, cut
from simulator.taxi.manifest import Declaration, Manifest
from simulator.taxi.tlc_file import read_trips
from simulator.taxi.trip_events import TripEvent, TripEvents

TRIP_EVENTS_FOLDER: Final = "taxi/trip_events"
SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Replayed:
    """Result of one replay: trips in = `trips` + the sum of `skipped`, counted by reason.

    `unread` counts, by column, values that events lack or that were rounded to cents, among the
    events made so far. `paced` is what landed in this run.
    """

    trips: int
    skipped: dict[str, int]
    unread: dict[str, int]
    paced: Paced


def replay(
    file: Path,
    landing: Path,
    *,
    speed: float | None = 3600,
    until: datetime | None = None,
    manifest: Path | None = None,
    every: timedelta = SECOND,
    unpaced_span: timedelta = timedelta(hours=1),
    max_rows: int = 10_000,
    longest_wait: timedelta = timedelta(seconds=60),
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Replayed:
    """Land the trips of a TLC file (Parquet, CSV, CSV.gz) as START and END events.

    Files go to `<landing>/taxi/trip_events`, in the order of event time, `speed` seconds of it per
    second of wall time (None or 0: as fast as possible). One file holds `every` of wall time,
    without a speed `unpaced_span` of event time, and never more than `max_rows` rows. A gap in the
    trips is waited for `longest_wait` at most. Events of `until` and later are left out.

    With a manifest a replay that was stopped or killed goes on, when called again with the same
    settings, behind the last file that landed; ManifestMismatch where the settings differ.
    UnknownTripLayout where the file holds no trips. Sorting holds the file in memory: about 1 GB
    for a month of yellow trips.
    """
    events = TripEvents(read_trips(file))
    wanted = takewhile(lambda event: until is None or event.at < until, events)
    span = every * speed if speed else unpaced_span
    folder = LandingFolder(landing / TRIP_EVENTS_FOLDER)
    record: Manifest | None = None
    if manifest is not None:
        settings: Declaration = {
            "replays": file.name,
            "file_span": span.total_seconds(),
            "max_rows": max_rows,
        }
        record = Manifest(manifest, landing, settings)

    def deliver(parcel: Parcel[TripEvent]) -> Landed:
        name = folder.next_name()
        if record is not None:
            record.announce(TRIP_EVENTS_FOLDER, name, len(parcel.rows))
        return folder.land([trip_line(event) for event in parcel.rows], name=name)

    paced = land_at_pace(
        _behind(cut(wanted, span, max_rows), record),
        deliver,
        Pace(speed=speed, longest_wait=longest_wait),
        stop=stop,
        on_progress=on_progress,
    )
    return Replayed(events.trips, events.skipped, dict(+events.unread), paced)


def trip_line(event: TripEvent) -> str:
    """The event as one JSON line; its instant is UTC, its money exact and null on a START."""
    return json_line(
        {
            "trip_id": event.trip_id,
            "is_start": event.is_start,
            "event_time": event.at,
            "pickup_zone": event.pickup_zone,
            "dropoff_zone": event.dropoff_zone,
            "passenger_count": event.passenger_count,
            "vendor": event.vendor,
            "fare": event.fare,
            "tip": event.tip,
            "total": event.total,
        }
    )


def _behind(
    parcels: Iterator[Parcel[TripEvent]], record: Manifest | None
) -> Iterator[Parcel[TripEvent]]:
    """The parcels that have not landed yet."""
    return islice(parcels, 0 if record is None else record.landed.get(TRIP_EVENTS_FOLDER, 0), None)
