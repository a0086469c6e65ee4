from datetime import UTC, datetime, timedelta

import pytest

from rivermark.model.errors import DeclarationError
from rivermark.model.restart_strategy import FixedDelay, NoRestart

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
