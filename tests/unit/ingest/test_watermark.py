"""The door's progress: what makes a row late, what runs ahead, and what is believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rivermark.ingest.watermark import Bounds, Progress, evaluate_split, furthest

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def at(minutes: float) -> datetime:
    return TEN + minutes * MINUTE


def plain(
    progress: Progress, oldest: datetime | None, newest: datetime | None
) -> tuple[Bounds, Progress]:
    """Judge a file by a lateness of one minute and no limit to jumps."""
    return evaluate_split(progress, oldest, newest, newest, MINUTE, None)


def bounded(
    progress: Progress, oldest: datetime, newest: datetime, below: datetime | None = None
) -> tuple[Bounds, Progress]:
    """The same, with at most an hour ahead; `below` is the newest time within that hour."""
    return evaluate_split(progress, oldest, below or newest, newest, MINUTE, HOUR)


def test_the_first_file_has_no_watermark_and_sets_the_progress() -> None:
    assert plain(Progress(), at(0), at(9)) == (
        Bounds(None, None),
        Progress(at(9)),
    )


def test_a_file_is_evaluate_splitd_by_the_files_before_it_and_never_by_itself() -> None:
    bounds, after = plain(Progress(at(9)), at(0), at(30))

    assert bounds.watermark == at(8)
    assert after.newest == at(30)


def test_an_older_file_does_not_set_the_progress_back() -> None:
    assert plain(Progress(at(9)), at(1), at(2))[1] == Progress(at(9))


def test_a_file_without_a_valid_row_changes_nothing() -> None:
    for progress in (
        Progress(),
        Progress(at(9)),
        Progress(at(9), doubted=True),
    ):
        assert plain(progress, None, None)[1] == progress
        assert evaluate_split(progress, None, None, None, MINUTE, HOUR)[1] == progress


def test_without_a_lateness_nothing_is_late_but_time_goes_on() -> None:
    assert evaluate_split(Progress(at(9)), at(1), at(12), at(12), None, None) == (
        Bounds(),
        Progress(at(12)),
    )


def test_the_first_file_is_believed_whatever_the_limit() -> None:
    assert bounded(Progress(), at(0), at(600)) == (Bounds(), Progress(at(600)))


def test_rows_beyond_the_limit_are_set_aside_and_the_rest_moves_the_progress() -> None:
    bounds, after = bounded(Progress(at(0)), at(1), at(3000), below=at(5))

    assert bounds.ceiling == at(60)
    assert after == Progress(at(5))


def test_a_row_exactly_at_the_limit_is_within_it() -> None:
    bounds, after = bounded(Progress(at(0)), at(60), at(60))

    assert bounds.ceiling == at(60)
    assert after == Progress(at(60))


def test_one_file_that_jumps_as_a_whole_is_doubted_and_the_next_like_it_believed() -> None:
    bounds, doubting = bounded(Progress(at(0)), at(90), at(95), below=at(0))
    assert bounds.ceiling == at(60)
    assert doubting == Progress(at(0), doubted=True)

    bounds, after = bounded(doubting, at(96), at(99))
    assert bounds == Bounds(at(-1), None)
    assert after == Progress(at(99))


def test_a_doubt_ends_when_the_next_file_is_where_the_stream_was() -> None:
    _, doubting = bounded(Progress(at(0)), at(90), at(95), below=at(0))
    _, after = bounded(doubting, at(1), at(2))
    assert after == Progress(at(2))

    bounds, again = bounded(after, at(96), at(99), below=at(0))
    assert bounds.ceiling == at(62)
    assert again.doubted


def test_a_file_that_only_partly_jumps_is_not_taken_for_a_gap() -> None:
    doubting = Progress(at(0), doubted=True)

    bounds, after = bounded(doubting, at(59), at(99), below=at(59))
    assert bounds.ceiling == at(60)
    assert after == Progress(at(59))


@pytest.mark.parametrize(
    "progress",
    [Progress(), Progress(at(1.5)), Progress(at(0), doubted=True)],
)
def test_a_progress_comes_back_from_a_commit_as_it_was(progress: Progress) -> None:
    assert Progress.from_json(progress.to_json()) == progress


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(at(1)), Bounds(at(1), at(61.25))])
def test_a_bounds_comes_back_from_a_commit_as_it_was(bounds: Bounds) -> None:
    assert Bounds.from_json(bounds.to_json()) == bounds


def test_splits_side_by_side_leave_the_progress_of_the_one_that_is_furthest() -> None:
    before = Progress(at(5))
    assert furthest(before, [before, Progress(at(9)), Progress(at(7))]) == Progress(at(9))
    assert furthest(before, [before, before]) is before
    doubting = Progress(at(5), doubted=True)
    assert furthest(before, [doubting, Progress(at(6))]) == Progress(at(6), doubted=True)
    assert furthest(doubting, [doubting, Progress(at(6))]) == Progress(at(6))
