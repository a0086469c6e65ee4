from collections.abc import Callable
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.disorder import Arrival, Disorder
from simulator.held import keep_late_back
from simulator.landing.parcels import Parcel, cut
from simulator.taxi.admission import admit
from simulator.taxi.arrivals import rides_by_event_time
from simulator.taxi.fares import FareEvent, fares
from simulator.taxi.rides import RideEvent

A_MINUTE = timedelta(minutes=1)
FARES = list(fares(1, 200))


def parcels_of(
    disorder: Disorder, span: timedelta, max_rows: int | None, lateness: timedelta
) -> list[Parcel[Arrival[FareEvent]]]:
    return list(keep_late_back(cut(disorder.as_they_come(FARES), span, max_rows), lateness))


@given(
    delay=st.integers(0, 60),
    late_by=st.integers(1, 1200),
    spare=st.integers(0, 60),
    span=st.integers(1, 7200),
    max_rows=st.none() | st.integers(1, 100),
    seed=st.integers(0, 1000),
)
def test_events_meant_late_are_late_at_the_door_and_no_others(
    delay: int, late_by: int, spare: int, span: int, max_rows: int | None, seed: int
) -> None:
    disorder = Disorder(
        delay=timedelta(seconds=delay),
        late=0.1,
        late_by=timedelta(seconds=late_by),
        loss=0.05,
        duplicates=0.1,
        resend_after=timedelta(seconds=10),
        seed=seed,
    )
    lateness = timedelta(seconds=delay + 10 + spare)

    parcels = parcels_of(disorder, timedelta(seconds=span), max_rows, lateness)

    landed = [[row for row in parcel.rows if row.kind != "lost"] for parcel in parcels]
    assert all(landed)
    assert [p.due for p in parcels] == sorted(p.due for p in parcels)
    outcome = admit([[row.event for row in rows] for rows in landed], lateness)
    meant: Callable[[str], list[int]] = lambda kind: sorted(  # noqa: E731
        row.event.ride_id for parcel in parcels for row in parcel.rows if row.kind == kind
    )
    assert sorted(fare.ride_id for fare in outcome.late) == meant("late")
    assert sorted(fare.ride_id for fare in outcome.duplicates) == meant("duplicate")
    assert sorted(fare.ride_id for fare in outcome.admitted) == meant("fresh")
    assert len(meant("fresh")) + len(meant("late")) + len(meant("lost")) == len(FARES)


def test_a_late_event_waits_for_the_file_behind_the_one_that_makes_it_late() -> None:
    first, second = FARES[0], FARES[10]
    both = Parcel(
        second.event_time,
        [
            Arrival(second.event_time, second, "fresh"),
            Arrival(second.event_time, first, "late"),
        ],
    )
    behind = Parcel(FARES[11].event_time, [Arrival(FARES[11].event_time, FARES[11], "fresh")])

    kept = list(keep_late_back([both, behind], A_MINUTE))

    assert [[row.event.ride_id for row in parcel.rows] for parcel in kept] == [[11], [1, 12]]


def test_an_event_that_never_comes_to_be_late_lands_as_a_fresh_one() -> None:
    only = Parcel(FARES[0].event_time, [Arrival(FARES[0].event_time, FARES[0], "late")])

    (kept,) = keep_late_back([only], A_MINUTE)

    assert [(row.event.ride_id, row.kind) for row in kept.rows] == [(1, "fresh")]


@pytest.mark.parametrize("span", [timedelta(seconds=30), timedelta(hours=3)])
def test_no_file_is_empty_and_no_loss_forgotten(span: timedelta) -> None:
    disorder = Disorder(loss=0.9, seed=5)
    rides: list[RideEvent] = list(rides_by_event_time(1, 60))

    parcels = list(keep_late_back(cut(disorder.as_they_come(rides), span), A_MINUTE))

    assert all(any(row.kind == "fresh" for row in parcel.rows) for parcel in parcels)
    rows = [row.event.key for parcel in parcels for row in parcel.rows]
    assert sorted(rows) == sorted(event.key for event in rides)
