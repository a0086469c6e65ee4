from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.disorder import Arrival, Disorder, Event
from simulator.taxi.arrivals import rides_by_event_time
from simulator.taxi.fares import FareEvent, fares

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
FARES = list(fares(1, 120))

seconds = st.integers(min_value=0, max_value=600).map(lambda s: timedelta(seconds=s))


@st.composite
def disorders(draw: st.DrawFn) -> Disorder:
    shares = draw(st.lists(st.integers(0, 33), min_size=3, max_size=3))
    return Disorder(
        delay=draw(seconds),
        late=shares[0] / 100,
        late_by=draw(seconds) + timedelta(seconds=1),
        loss=shares[1] / 100,
        duplicates=shares[2] / 100,
        resend_after=draw(seconds),
        seed=draw(st.integers(-(2**70), 2**70)),
    )


def applied(disorder: Disorder, events: Iterable[Event]) -> tuple[list[Arrival[Any]], list[Any]]:
    """What arrives, in order of arrival, and the events that are lost."""
    under_way = list(disorder.as_they_come(sorted(events, key=lambda event: event.event_time)))
    lost = [arrival.event for arrival in under_way if arrival.kind == "lost"]
    return [arrival for arrival in under_way if arrival.kind != "lost"], lost


@given(disorders())
def test_no_event_vanishes_and_none_is_invented(disorder: Disorder) -> None:
    arrivals, lost = applied(disorder, FARES)

    once = [a.event.ride_id for a in arrivals if a.kind != "duplicate"]
    assert sorted(once + [fare.ride_id for fare in lost]) == [fare.ride_id for fare in FARES]
    twice = [a.event.ride_id for a in arrivals if a.kind == "duplicate"]
    assert len(set(twice)) == len(twice)
    assert set(twice) <= {a.event.ride_id for a in arrivals if a.kind == "fresh"}


@given(disorders())
def test_arrivals_are_in_order_and_delays_within_their_bounds(disorder: Disorder) -> None:
    arrivals, _ = applied(disorder, FARES)

    assert [a.at for a in arrivals] == sorted(a.at for a in arrivals)
    first_at = {a.event.ride_id: a.at for a in arrivals if a.kind == "fresh"}
    for arrival in arrivals:
        delay = arrival.at - arrival.event.event_time
        if arrival.kind == "fresh":
            assert timedelta(0) <= delay < max(disorder.delay, timedelta(microseconds=1))
        elif arrival.kind == "late":
            assert disorder.delay + disorder.late_by <= delay
            assert delay < disorder.delay + 2 * disorder.late_by
        else:
            again_after = arrival.at - first_at[arrival.event.ride_id]
            assert timedelta(0) <= again_after
            assert again_after < max(disorder.resend_after, timedelta(microseconds=1))


@given(disorders())
def test_what_befalls_an_event_does_not_depend_on_the_others(disorder: Disorder) -> None:
    every_third: list[FareEvent] = FARES[::3]

    whole, lost = applied(disorder, FARES)
    part, lost_of_part = applied(disorder, every_third)

    chosen = {fare.ride_id for fare in every_third}
    assert sorted((a.at, a.event.ride_id, a.kind) for a in whole if a.event.ride_id in chosen) == (
        sorted((a.at, a.event.ride_id, a.kind) for a in part)
    )
    assert [fare for fare in lost if fare.ride_id in chosen] == lost_of_part


def test_rates_are_met() -> None:
    disorder = Disorder(
        delay=timedelta(seconds=30),
        late=0.02,
        late_by=timedelta(minutes=5),
        loss=0.03,
        duplicates=0.05,
        seed=3,
    )
    events = list(fares(1, 20_000))

    arrivals, lost = applied(disorder, events)

    counted = {kind: sum(a.kind == kind for a in arrivals) for kind in ("late", "duplicate")}
    # Three standard deviations of 20,000 draws.
    assert counted["late"] == pytest.approx(400, abs=60)
    assert counted["duplicate"] == pytest.approx(1000, abs=93)
    assert len(lost) == pytest.approx(600, abs=73)


def test_the_start_and_the_end_of_a_ride_have_fates_of_their_own() -> None:
    disorder = Disorder(loss=0.5)

    _, lost = applied(disorder, rides_by_event_time(1, 200))

    starts = {event.ride_id for event in lost if event.is_start}
    ends = {event.ride_id for event in lost if not event.is_start}
    assert starts - ends
    assert ends - starts


def test_another_seed_is_another_world() -> None:
    first, _ = applied(Disorder(delay=timedelta(seconds=30), seed=1), FARES)
    second, _ = applied(Disorder(delay=timedelta(seconds=30), seed=2), FARES)

    assert [a.at for a in first] != [a.at for a in second]


def test_endless_events_arrive_while_they_happen() -> None:
    coming = Disorder(delay=timedelta(minutes=1)).as_they_come(fares(1, None))

    first = [next(coming) for _ in range(5000)]

    assert [a.at for a in first] == sorted(a.at for a in first)


def test_without_disorder_events_arrive_when_they_happen() -> None:
    arrivals, lost = applied(Disorder(), FARES)

    assert [(a.at, a.event) for a in arrivals] == [(fare.event_time, fare) for fare in FARES]
    assert lost == []


@pytest.mark.parametrize(
    "broken",
    [
        {"loss": -0.1},
        {"loss": 0.6, "duplicates": 0.6},
        {"delay": timedelta(seconds=-1)},
        {"late": 0.1},
    ],
)
def test_impossible_disorder_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has a message of its own
        Disorder(**broken)  # type: ignore[arg-type]
