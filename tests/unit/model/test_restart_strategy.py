import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rivermark.model.errors import DeclarationError
from rivermark.model.restart_strategy import FixedDelay, GrowingDelay, NoRestart

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECONDS = timedelta(seconds=1)
THREE_QUICK_DEATHS = [NOON, NOON + 20 * SECONDS, NOON + 40 * SECONDS]
DIED = NOON + 60 * SECONDS


def test_a_fixed_delay_waits_the_same_time_after_each_death() -> None:
    strategy = FixedDelay(delay=10 * SECONDS)

    assert strategy.next_start([NOON], DIED) == DIED + 10 * SECONDS
    assert strategy.next_start(THREE_QUICK_DEATHS, DIED) == DIED + 10 * SECONDS


def test_a_fixed_delay_without_attempts_never_gives_up() -> None:
    starts = [NOON + n * SECONDS for n in range(50)]

    assert FixedDelay().next_start(starts, DIED) is not None


@pytest.mark.parametrize(("attempts", "starts_again"), [(1, False), (2, False), (3, True)])
def test_a_fixed_delay_gives_up_after_its_attempts_in_a_row(
    attempts: int, starts_again: bool
) -> None:
    next_start = FixedDelay(attempts=attempts).next_start(THREE_QUICK_DEATHS, DIED)

    assert (next_start is not None) is starts_again


def test_a_life_of_reset_after_makes_earlier_failures_count_no_more() -> None:
    strategy = FixedDelay(attempts=1, reset_after=timedelta(minutes=10))
    an_hour_later = NOON + timedelta(hours=1)
    starts = [NOON, NOON + 20 * SECONDS, an_hour_later]

    # The second start lived for an hour, so only the third start has died young.
    assert strategy.next_start(starts, an_hour_later + 30 * SECONDS) is not None
    # The third lived for an hour as well: nothing has died young.
    assert strategy.next_start(starts, an_hour_later + timedelta(hours=1)) is not None


def test_no_restart_never_starts_again() -> None:
    assert NoRestart().next_start([NOON], DIED) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"delay": timedelta(seconds=-1)},
        {"reset_after": timedelta(0)},
        {"attempts": 0},
    ],
)
def test_pauses_and_attempts_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(DeclarationError):
        FixedDelay(**wrong)


def test_a_growing_delay_waits_longer_each_time_and_gives_up() -> None:
    strategy, starts, waits = GrowingDelay(), [DIED], []
    died = DIED + 20 * SECONDS
    while (following := strategy.next_start(starts, died)) is not None:
        waits.append((following - died).total_seconds())
        starts.append(following)
        died = following + 20 * SECONDS

    assert waits == [2, 8, 32, 128, 300]
    assert len(starts) == 6


def test_a_growing_delay_with_many_attempts_stays_at_its_longest() -> None:
    starts = [NOON + n * SECONDS for n in range(50)]

    following = GrowingDelay(attempts=100).next_start(starts, DIED)

    assert following == DIED + timedelta(minutes=5)


def test_whenever_runs_die_there_are_at_most_six_starts_in_ten_minutes() -> None:
    chance = random.Random(5)
    for _ in range(200):
        strategy, starts = GrowingDelay(), [DIED]
        for _ in range(30):
            died = starts[-1] + timedelta(seconds=chance.choice((1, 20, 200, 599, 600, 3_000)))
            following = strategy.next_start(starts, died)
            if following is None:
                break
            starts.append(following)
        for first, seventh in zip(starts, starts[6:], strict=False):
            assert seventh - first >= timedelta(minutes=10)


def test_a_run_that_lasted_makes_the_next_pause_short_again() -> None:
    starts = [DIED - timedelta(hours=1), DIED - timedelta(minutes=20)]

    assert GrowingDelay().next_start(starts, DIED) == DIED + 2 * SECONDS


@pytest.mark.parametrize(
    "wrong",
    [
        {"first": timedelta(seconds=-1)},
        {"factor": 0.5},
        {"longest": timedelta(seconds=1)},
        {"attempts": 0},
        {"reset_after": timedelta(0)},
    ],
)
def test_a_growing_delay_refuses_numbers_without_meaning(wrong: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError):
        GrowingDelay(**wrong)
