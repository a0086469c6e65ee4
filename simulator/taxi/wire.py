"""Generated events as the JSON lines that land, and back."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from assets.taxi.fares import FARE_EVENT
from assets.taxi.rides import RIDE_EVENT
from simulator.feeds import line_of
from simulator.landing.folder import files_in_landing_order
from simulator.taxi.fares import FareEvent
from simulator.taxi.rides import RideEvent

RIDES_FOLDER: Final = "taxi/rides"
FARES_FOLDER: Final = "taxi/fares"

GeneratedEvent = RideEvent | FareEvent


_RIDE_LINE: Final = line_of(RIDE_EVENT)
_FARE_LINE: Final = line_of(FARE_EVENT)


def to_line(event: GeneratedEvent) -> str:
    """The event as one JSON line; instants UTC, `end_time` null on a START, money exact."""
    return _RIDE_LINE(event) if isinstance(event, RideEvent) else _FARE_LINE(event)


def ride_from_line(line: str | bytes) -> RideEvent:
    """The ride event that a line was made from; msgspec.DecodeError where it is none."""
    return _RIDE.decode(line)


def fare_from_line(line: str | bytes) -> FareEvent:
    """The fare that a line was made from; msgspec.DecodeError where it is none."""
    return _FARE.decode(line)


def read_rides(landing: Path) -> list[list[RideEvent]]:
    """The ride events of each landed file, files in the order in which a reader takes them."""
    return [
        [ride_from_line(line) for line in lines] for lines in landed_lines(landing / RIDES_FOLDER)
    ]


def read_fares(landing: Path) -> list[list[FareEvent]]:
    """The fares of each landed file, files in the order in which a reader takes them."""
    return [
        [fare_from_line(line) for line in lines] for lines in landed_lines(landing / FARES_FOLDER)
    ]


def landed_lines(folder: Path) -> Iterator[list[bytes]]:
    """The lines of each landed file, files in the order in which a reader takes them."""
    for file in files_in_landing_order(folder) if folder.is_dir() else []:
        content = file.read_bytes()
        yield (gzip.decompress(content) if file.suffix == ".gz" else content).splitlines()


_RIDE: Final = msgspec.json.Decoder(RideEvent)
_FARE: Final = msgspec.json.Decoder(FareEvent)
