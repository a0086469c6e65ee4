"""Generated events as the JSON lines that land, and back."""

import gzip
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import msgspec

from rivermark.testing.landing.folder import files_in_landing_order
from rivermark.testing.landing.json_lines import json_line
from simulator.taxi.fares import FareEvent
from simulator.taxi.rides import RideEvent

RIDES_FOLDER: Final = "taxi/rides"
FARES_FOLDER: Final = "taxi/fares"

GeneratedEvent = RideEvent | FareEvent


def to_line(event: GeneratedEvent) -> str:
    """The event as one JSON line; instants UTC, `end_time` null on a START, money exact."""
    if isinstance(event, RideEvent):
        return json_line(
            {
                "ride_id": event.ride_id,
                "is_start": event.is_start,
                "event_time": event.event_time,
                "start_time": event.start_time,
                "end_time": event.end_time,
                "start_lon": event.start_lon,
                "start_lat": event.start_lat,
                "end_lon": event.end_lon,
                "end_lat": event.end_lat,
                "passenger_count": event.passenger_count,
                "taxi_id": event.taxi_id,
                "driver_id": event.driver_id,
            }
        )
    return json_line(
        {
            "ride_id": event.ride_id,
            "taxi_id": event.taxi_id,
            "driver_id": event.driver_id,
            "event_time": event.event_time,
            "payment_type": event.payment_type,
            "tip": event.tip,
            "tolls": event.tolls,
            "total_fare": event.total_fare,
        }
    )


def ride_from_line(line: str | bytes) -> RideEvent:
    """The ride event that a line was made from; msgspec.DecodeError where it is none."""
    return _RIDE.decode(line)


def fare_from_line(line: str | bytes) -> FareEvent:
    """The fare that a line was made from; msgspec.DecodeError where it is none."""
    row = _FARE.decode(line)
    return FareEvent(**{name: getattr(row, name) for name in row.__struct_fields__})


def read_rides(landing: Path) -> list[list[RideEvent]]:
    """The ride events of each landed file, files in the order in which a reader takes them."""
    return [[ride_from_line(line) for line in lines] for lines in _files(landing / RIDES_FOLDER)]


def read_fares(landing: Path) -> list[list[FareEvent]]:
    """The fares of each landed file, files in the order in which a reader takes them."""
    return [[fare_from_line(line) for line in lines] for lines in _files(landing / FARES_FOLDER)]


def _files(folder: Path) -> Iterator[list[bytes]]:
    for file in files_in_landing_order(folder) if folder.is_dir() else []:
        content = file.read_bytes()
        yield (gzip.decompress(content) if file.suffix == ".gz" else content).splitlines()


class _FareRow(msgspec.Struct, rename={"start_time": "event_time"}):
    ride_id: int
    taxi_id: int
    driver_id: int
    start_time: datetime
    payment_type: Literal["CARD", "CASH"]
    tip: Decimal
    tolls: Decimal
    total_fare: Decimal


_RIDE: Final = msgspec.json.Decoder(RideEvent)
_FARE: Final = msgspec.json.Decoder(_FareRow)
