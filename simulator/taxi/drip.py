"""The generated world drips into landing folders, with declared disorder, at a declared rate."""

import heapq
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from rivermark.testing.landing import Landed
from simulator.disorder import Arrival
from simulator.held import keep_late_back
from simulator.landing.commands import stop_after
from simulator.landing.folder import LandingFolder
from simulator.landing.pace import Paced, Progress, land_at_pace
from simulator.landing.parcels import Parcel, cut
from simulator.taxi.arrivals import rides_by_event_time
from simulator.taxi.clock import RideClock
from simulator.taxi.drip_plan import DripPlan
from simulator.taxi.fares import fares
from simulator.taxi.manifest import Declaration, Manifest, read_manifest
from simulator.taxi.wire import FARES_FOLDER, RIDES_FOLDER, GeneratedEvent, to_line

BEGINNING: Final = "beginning"
FIRST_RIDE: Final = "first_ride"


@dataclass(frozen=True, slots=True)
class Dripped:
    """What one run of a drip landed: files and rows, and how many events of each kind."""

    paced: Paced
    clock: RideClock
    kinds: dict[str, int]


def drip(
    landing: Path,
    manifest: Path,
    plan: DripPlan,
    *,
    first_ride: int = 1,
    behind_others: bool = False,
    lasting: timedelta | None = None,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Dripped:
    """Land ride and fare events below `landing` until they end, or `lasting`, `stop` or Ctrl-C.

    Files go to `<landing>/taxi/rides` and `<landing>/taxi/fares`; `manifest` lies outside of them.
    What lands in which file depends on the plan alone. Called again with the same plan and
    manifest, after whatever end, it goes on with the file that is next.

    Rides are counted from `first_ride`. A drip that begins `behind_others` takes its place behind
    the files that lie in the folders, so its rides need numbers that theirs do not have. Both only
    count when a drip begins; afterwards the manifest knows them.

    ManifestMismatch where the manifest belongs to another plan; ValueError where a folder holds
    files that this drip did not land.
    """
    folders = {name: LandingFolder(landing / name) for name in (RIDES_FOLDER, FARES_FOLDER)}
    earlier = _declaration(manifest, landing)
    if earlier:
        first_ride = int(earlier.get(FIRST_RIDE) or 1)
        before = {name: int(earlier.get(_before(name)) or 0) for name in folders}
    else:
        before = {name: f.next_number if behind_others else 0 for name, f in folders.items()}
    clock = plan.ride_clock(_beginning(earlier) or datetime.now(UTC))
    if plan.clock == "now":
        clock = replace(clock, before=first_ride - 1)
    last_ride = None if plan.rides is None else first_ride + plan.rides - 1
    own = {FIRST_RIDE: first_ride, **{_before(name): n for name, n in before.items()}}
    record = Manifest(manifest, landing, {**plan.declaration(clock), **own})
    for name, folder in folders.items():
        if folder.next_number > before[name] + record.landed.get(name, 0):
            raise ValueError(
                f"{folder.path} holds files that {manifest} does not list; "
                "give the manifest of the drip that landed them, or an empty landing folder"
            )
    kinds: Counter[str] = Counter()

    def deliver(parcel: _FolderParcel) -> Landed:
        folder = folders[parcel.folder]
        name = folder.next_name()
        lines = [to_line(row.event) for row in parcel.rows if row.kind != "lost"]
        events = [(tuple(map(int, row.event.key)), row.kind) for row in parcel.rows]
        hours = Counter(f"{row.event.event_time:%Y-%m-%dT%H:00Z}" for row in parcel.rows)
        record.announce(parcel.folder, name, len(lines), events, hours)
        landed = folder.land(lines, name=name)
        kinds.update(kind for _, kind in events)
        return landed

    stop = stop or threading.Event()
    with stop_after(None if lasting is None else lasting.total_seconds(), stop):
        paced = land_at_pace(
            heapq.merge(
                _parcels(
                    RIDES_FOLDER, rides_by_event_time(first_ride, last_ride, clock), plan, record
                ),
                _parcels(FARES_FOLDER, fares(first_ride, last_ride, clock), plan, record),
                key=lambda parcel: parcel.due,
            ),
            deliver,
            plan.pace,
            stop=stop,
            on_progress=on_progress,
        )
    return Dripped(paced, clock, dict(kinds))


@dataclass(frozen=True)
class _FolderParcel(Parcel[Arrival[GeneratedEvent]]):
    folder: str


def _parcels(
    folder: str, events: Iterable[GeneratedEvent], plan: DripPlan, record: Manifest
) -> Iterator[_FolderParcel]:
    arrivals = plan.disorder.as_they_come(events)
    parcels = keep_late_back(cut(arrivals, plan.file_span, plan.max_rows), plan.lateness)
    for parcel in islice(parcels, record.landed.get(folder, 0), None):
        yield _FolderParcel(parcel.due, parcel.rows, folder)


def _declaration(manifest: Path, landing: Path) -> Declaration:
    """What the drip that wrote this manifest declared; empty where there is none."""
    return read_manifest(manifest, landing).declaration if manifest.exists() else {}


def _beginning(declaration: Declaration) -> datetime | None:
    """When a drip began by its own clock; None where none did."""
    declared = declaration.get(BEGINNING)
    return datetime.fromisoformat(declared) if isinstance(declared, str) else None


def _before(folder: str) -> str:
    """Under what a manifest keeps how many numbers of a folder others had taken."""
    return f"files_before:{folder}"
