"""The first rides of the training and their fares, landed at once in the training's own order."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final, TypeVar

from rivermark.testing.landing import Landed
from simulator.landing.folder import LandingFolder
from simulator.taxi.arrivals import rides_in_blocks
from simulator.taxi.clock import TRAINING_CLOCK, RideClock
from simulator.taxi.fares import fares
from simulator.taxi.wire import FARES_FOLDER, RIDES_FOLDER, to_line

T = TypeVar("T")

BLOCKS_A_FILE: Final = 500
FARES_A_FILE: Final = 2_500


def land_training(
    landing: Path,
    last: int,
    *,
    blocks_a_file: int = BLOCKS_A_FILE,
    fares_a_file: int = FARES_A_FILE,
    ending: str = ".json",
) -> list[Landed]:
    """Land rides 1 to `last` and their fares below `landing`, on the training's clock.

    Nothing is late: within a block of five rides events are out of order by up to 80 seconds, and
    a block never spans two files. The ENDs that are due after the last block are in the last file.
    """
    rides_folder = LandingFolder(landing / RIDES_FOLDER, ending)
    fares_folder = LandingFolder(landing / FARES_FOLDER, ending)
    return [
        *map(rides_folder.land, ride_parts(last, blocks_a_file)),
        *map(fares_folder.land, fare_parts(last, fares_a_file)),
    ]


def ride_parts(
    last: int, blocks: int, clock: RideClock = TRAINING_CLOCK
) -> Iterator[Iterable[str]]:
    """The lines of rides 1 to `last` in order of arrival, so many blocks of five at a time."""
    for part in _in_parts(rides_in_blocks(last, clock), blocks):
        yield map(to_line, chain.from_iterable(part))


def fare_parts(last: int, size: int, clock: RideClock = TRAINING_CLOCK) -> Iterator[Iterable[str]]:
    """The lines of the fares of rides 1 to `last`, `size` at a time."""
    for part in _in_parts(fares(1, last, clock), size):
        yield map(to_line, part)


def _in_parts(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while part := list(islice(items, size)):
        yield part
