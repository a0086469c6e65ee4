import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark.testing.landing import Landed
from simulator.landing.pace import Pace, Progress, land_at_pace
from simulator.landing.parcels import Parcel

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
TODAY = datetime(2024, 6, 1, tzinfo=UTC)
A_SECOND = timedelta(seconds=1)


class Row:
    def __init__(self, at: datetime) -> None:
        self.at = at


class Wall(threading.Event):
    """A wall clock that moves when somebody waits, and while a file is written."""

    def __init__(self, writing: timedelta = timedelta(0)) -> None:
        super().__init__()
        self.time = TODAY
        self.writing = writing
        self.landed: list[timedelta] = []

    def wait(self, timeout: float | None = None) -> bool:
        if not self.is_set():
            self.time += timedelta(seconds=timeout or 0)
        return self.is_set()

    def now(self) -> datetime:
        return self.time

    def deliver(self, parcel: Parcel[Row]) -> Landed:
        self.landed.append(self.time - TODAY)
        self.time += self.writing
        return Landed(Path("part"), len(parcel.rows), 0, 0)


def due(*seconds: int) -> list[Parcel[Row]]:
    return [Parcel(NOON + s * A_SECOND, [Row(NOON + s * A_SECOND)]) for s in seconds]


def in_seconds(landed: list[timedelta]) -> list[float]:
    return [moment.total_seconds() for moment in landed]


def test_parcels_land_at_the_asked_speed() -> None:
    wall = Wall()

    paced = land_at_pace(due(60, 120, 600), wall.deliver, Pace(speed=60), stop=wall, now=wall.now)

    assert in_seconds(wall.landed) == [0, 1, 9]
    assert (paced.files, paced.rows, paced.stopped) == (3, 3, False)


@pytest.mark.parametrize("speed", [None, 0])
def test_without_a_speed_nothing_waits(speed: float | None) -> None:
    wall = Wall()

    land_at_pace(due(0, 10**6), wall.deliver, Pace(speed=speed), stop=wall, now=wall.now)

    assert in_seconds(wall.landed) == [0, 0]


def test_a_slow_writer_does_not_move_the_schedule() -> None:
    wall = Wall(writing=3 * A_SECOND)
    told: list[Progress] = []

    paced = land_at_pace(
        due(1, 2, 3, 60),
        wall.deliver,
        Pace(speed=1),
        stop=wall,
        now=wall.now,
        on_progress=told.append,
    )

    # Behind schedule it lands without a pause, and is in time again when it has caught up.
    assert in_seconds(wall.landed) == [0, 3, 6, 59]
    assert [progress.behind for progress in told] == [
        3 * A_SECOND,
        5 * A_SECOND,
        7 * A_SECOND,
        3 * A_SECOND,
    ]
    assert paced.most_behind == 7 * A_SECOND
    assert [progress.files for progress in told] == [1, 2, 3, 4]


def test_in_real_time_each_parcel_lands_at_its_own_instant() -> None:
    wall = Wall()
    parcels = [Parcel(TODAY + s * A_SECOND, [Row(TODAY)]) for s in (-20, -10, 5, 7)]

    land_at_pace(parcels, wall.deliver, Pace(speed=1, real_time=True), stop=wall, now=wall.now)

    assert in_seconds(wall.landed) == [0, 0, 5, 7]


def test_a_long_silence_is_cut_and_the_speed_kept_behind_it() -> None:
    wall = Wall()
    years_later = 10**8

    land_at_pace(
        due(0, years_later, years_later + 5),
        wall.deliver,
        Pace(speed=1, longest_wait=60 * A_SECOND),
        stop=wall,
        now=wall.now,
    )

    assert in_seconds(wall.landed) == [0, 60, 65]


def test_a_landing_that_is_told_to_stop_says_so() -> None:
    wall = Wall()

    paced = land_at_pace(
        due(0, 1, 2),
        wall.deliver,
        Pace(speed=1),
        stop=wall,
        now=wall.now,
        on_progress=lambda progress: wall.set() if progress.files == 2 else None,
    )

    assert (paced.files, paced.stopped) == (2, True)


def test_ctrl_c_ends_with_what_has_landed() -> None:
    wall = Wall()

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    paced = land_at_pace(
        due(0, 1), wall.deliver, Pace(), stop=wall, now=wall.now, on_progress=interrupt
    )

    assert (paced.files, paced.stopped) == (1, True)


def test_an_error_of_the_writer_is_not_swallowed() -> None:
    def fail(parcel: Parcel[Row]) -> Landed:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        land_at_pace(due(0), fail, Pace())


def test_a_pace_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="backwards"):
        Pace(speed=-1)
    with pytest.raises(ValueError, match="real time"):
        Pace(speed=2, real_time=True)
