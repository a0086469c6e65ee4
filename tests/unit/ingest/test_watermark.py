"""The door's clock: what makes a row late, what runs ahead, and what is believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rivermark.ingest.watermark import Clock, Verdict, judge

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def at(minutes: float) -> datetime:
    return TEN + minutes * MINUTE


def plain(clock: Clock, oldest: datetime | None, newest: datetime | None) -> tuple[Verdict, Clock]:
    """Judge a file by a lateness of one minute and no limit to jumps."""
    return judge(clock, oldest, newest, newest, MINUTE, None)


def bounded(
    clock: Clock, oldest: datetime, newest: datetime, below: datetime | None = None
) -> tuple[Verdict, Clock]:
    """The same, with at most an hour ahead; `below` is the newest time within that hour."""
    return judge(clock, oldest, below or newest, newest, MINUTE, HOUR)


def test_the_first_file_has_no_watermark_and_sets_the_clock() -> None:
    assert plain(Clock(), at(0), at(9)) == (Verdict(None, None), Clock(at(9)))


def test_a_file_is_judged_by_the_files_before_it_and_never_by_itself() -> None:
    verdict, after = plain(Clock(at(9)), at(0), at(30))

    assert verdict.watermark == at(8)
    assert after.newest == at(30)


def test_an_older_file_does_not_set_the_clock_back() -> None:
    assert plain(Clock(at(9)), at(1), at(2))[1] == Clock(at(9))


def test_a_file_without_a_valid_row_changes_nothing() -> None:
    for clock in (Clock(), Clock(at(9)), Clock(at(9), doubted=True)):
        assert plain(clock, None, None)[1] == clock
        assert judge(clock, None, None, None, MINUTE, HOUR)[1] == clock


def test_without_a_lateness_nothing_is_late_but_time_goes_on() -> None:
    assert judge(Clock(at(9)), at(1), at(12), at(12), None, None) == (Verdict(), Clock(at(12)))


def test_the_first_file_is_believed_whatever_the_limit() -> None:
    assert bounded(Clock(), at(0), at(600)) == (Verdict(), Clock(at(600)))


def test_rows_beyond_the_limit_are_set_aside_and_the_rest_moves_the_clock() -> None:
    verdict, after = bounded(Clock(at(0)), at(1), at(3000), below=at(5))

    assert verdict.ceiling == at(60)
    assert after == Clock(at(5))


def test_a_row_exactly_at_the_limit_is_within_it() -> None:
    verdict, after = bounded(Clock(at(0)), at(60), at(60))

    assert verdict.ceiling == at(60)
    assert after == Clock(at(60))


def test_one_file_that_jumps_as_a_whole_is_doubted_and_the_next_like_it_believed() -> None:
    verdict, doubting = bounded(Clock(at(0)), at(90), at(95), below=at(0))
    assert verdict.ceiling == at(60)
    assert doubting == Clock(at(0), doubted=True)

    verdict, after = bounded(doubting, at(96), at(99))
    assert verdict == Verdict(at(-1), None)
    assert after == Clock(at(99))


def test_a_doubt_ends_when_the_next_file_is_where_the_stream_was() -> None:
    _, doubting = bounded(Clock(at(0)), at(90), at(95), below=at(0))
    _, after = bounded(doubting, at(1), at(2))
    assert after == Clock(at(2))

    verdict, again = bounded(after, at(96), at(99), below=at(0))
    assert verdict.ceiling == at(62)
    assert again.doubted


def test_a_file_that_only_partly_jumps_is_not_taken_for_a_gap() -> None:
    doubting = Clock(at(0), doubted=True)

    verdict, after = bounded(doubting, at(59), at(99), below=at(59))
    assert verdict.ceiling == at(60)
    assert after == Clock(at(59))


@pytest.mark.parametrize("clock", [Clock(), Clock(at(1.5)), Clock(at(0), doubted=True)])
def test_a_clock_comes_back_from_a_commit_as_it_was(clock: Clock) -> None:
    assert Clock.from_json(clock.to_json()) == clock


@pytest.mark.parametrize("verdict", [Verdict(), Verdict(at(1)), Verdict(at(1), at(61.25))])
def test_a_verdict_comes_back_from_a_commit_as_it_was(verdict: Verdict) -> None:
    assert Verdict.from_json(verdict.to_json()) == verdict
