"""F065: windows of so many events, in order of arrival, against slices of the story."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rivermark.process.windows import Counting, WindowContext, WindowProcess
from rivermark.testing import split_invariant


class Vehicle(msgspec.Struct, frozen=True):
    crossing: str
    number: int
    at: int = 0


class Group(msgspec.Struct, frozen=True):
    crossing: str
    numbers: tuple[int, ...]


class Fours(WindowProcess[Vehicle, Group]):
    """Each four vehicles of a crossing; fewer stay in the state."""

    key = "crossing"
    windows = Counting(4)

    def on_window(self, events: list[Vehicle], ctx: WindowContext[Group]) -> None:
        ctx.emit(Group(ctx.key, tuple(each.number for each in events)))


class FoursByThree(Fours):
    """The last four vehicles, every three."""

    windows = Counting(4, 3)


class FoursInTime(Fours):
    """As soon as there are four, or ten seconds after the first of them."""

    time = "at"
    order = "event_time"
    hold = True
    windows = Counting(4, timeout=timedelta(seconds=10))


crossings = st.lists(st.sampled_from(["north", "south"]), min_size=1, max_size=14)


def numbered(story: list[str]) -> list[Vehicle]:
    return [Vehicle(crossing, n) for n, crossing in enumerate(story)]


def by_crossing(story: list[Vehicle]) -> dict[str, list[Vehicle]]:
    return {name: [e for e in story if e.crossing == name] for name in ("north", "south")}


@given(crossings)
def test_each_four_make_a_window_and_the_rest_stays(story: list[str]) -> None:
    ran = split_invariant(Fours, numbered(story), delay=timedelta(seconds=1))

    own = by_crossing(numbered(story))
    for crossing, vehicles in own.items():
        numbers = [each.number for each in vehicles]
        full = [tuple(numbers[n : n + 4]) for n in range(0, len(numbers) - 3, 4)]
        assert [e.numbers for e in ran.outputs.main if e.crossing == crossing] == full
    assert (ran.state is None) == all(len(each) % 4 == 0 for each in own.values())


@given(crossings)
def test_every_third_vehicle_shows_the_last_four(story: list[str]) -> None:
    ran = split_invariant(FoursByThree, numbered(story), delay=timedelta(seconds=1))

    for crossing, vehicles in by_crossing(numbered(story)).items():
        numbers = [each.number for each in vehicles]
        shown = [tuple(numbers[max(0, n - 4) : n]) for n in range(3, len(numbers) + 1, 3)]
        assert [e.numbers for e in ran.outputs.main if e.crossing == crossing] == shown


@given(st.lists(st.tuples(st.sampled_from(["north", "south"]), st.integers(0, 40)), max_size=12))
def test_a_time_out_closes_what_too_few_vehicles_reach(story: list[tuple[str, int]]) -> None:
    vehicles = [Vehicle(name, n, second * 1_000) for n, (name, second) in enumerate(story)]
    ran = split_invariant(FoursInTime, vehicles, delay=timedelta(seconds=41))

    for crossing, own in by_crossing(vehicles).items():
        found = [e.numbers for e in ran.outputs.main if e.crossing == crossing]
        assert found == windows(sorted(own, key=lambda each: each.at))
    assert ran.state is None


def windows(vehicles: list[Vehicle]) -> list[tuple[int, ...]]:
    """Numbers of the vehicles that go together: at most four, within ten seconds of the first."""
    found: list[list[Vehicle]] = []
    for each in vehicles:
        last = found[-1] if found else []
        if last and len(last) < 4 and each.at <= last[0].at + 10_000:
            last.append(each)
        else:
            found.append([each])
    return [tuple(each.number for each in window) for window in found]
