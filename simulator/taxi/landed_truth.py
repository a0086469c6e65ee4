"""What the door must have made of the generated events in a landing folder."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from simulator.taxi.door import Admission, admit
from simulator.taxi.fares import FareEvent
from simulator.taxi.rides import RideEvent
from simulator.taxi.wire import read_fares, read_rides


@dataclass(frozen=True, slots=True)
class LandedTruth:
    """The door's right decisions about rides and fares; `truth` says what follows from them."""

    rides: Admission[RideEvent]
    fares: Admission[FareEvent]


def truth_of(landing: Path, lateness: timedelta) -> LandedTruth:
    """Read `<landing>/taxi/rides` and `<landing>/taxi/fares` in landing order, and decide."""
    return LandedTruth(
        rides=admit(read_rides(landing), lateness),
        fares=admit(read_fares(landing), lateness),
    )
