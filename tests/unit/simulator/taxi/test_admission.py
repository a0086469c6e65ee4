from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from simulator.taxi.admission import admit

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Seen:
    event_time: datetime
    key: tuple[int, ...]


def at(minute: float, key: int) -> Seen:
    return Seen(NOON + minute * A_MINUTE, (key,))


def test_a_row_as_old_as_the_watermark_is_late() -> None:
    outcome = admit([[at(10, 1)], [at(5, 2), at(5.001, 3)]], lateness=5 * A_MINUTE)

    assert outcome.late == [at(5, 2)]
    assert outcome.admitted == [at(10, 1), at(5.001, 3)]


def test_rows_of_one_file_are_not_late_by_each_other() -> None:
    outcome = admit([[at(60, 1), at(0, 2)]], lateness=A_MINUTE)

    assert outcome.late == []


def test_a_late_row_does_not_move_the_watermark() -> None:
    outcome = admit([[at(10, 1)], [at(1, 2)], [at(9.5, 3)]], lateness=A_MINUTE)

    assert outcome.admitted == [at(10, 1), at(9.5, 3)]
    assert outcome.watermark == NOON + 9 * A_MINUTE


def test_the_second_of_a_key_is_a_duplicate_in_the_same_file_and_in_a_later_one() -> None:
    outcome = admit([[at(1, 1), at(1, 1)], [at(1, 1), at(2, 2)]], lateness=5 * A_MINUTE)

    assert outcome.admitted == [at(1, 1), at(2, 2)]
    assert outcome.duplicates == [at(1, 1), at(1, 1)]


def test_a_copy_that_comes_too_late_is_late_and_no_duplicate() -> None:
    outcome = admit([[at(1, 1)], [at(9, 2)], [at(1, 1)]], lateness=5 * A_MINUTE)

    assert (outcome.late, outcome.duplicates) == ([at(1, 1)], [])


def test_nothing_landed_means_no_watermark() -> None:
    nothing: list[list[Seen]] = [[], []]

    outcome = admit(nothing, lateness=A_MINUTE)

    assert (outcome.admitted, outcome.newest, outcome.watermark) == ([], None, None)


files = st.lists(
    st.lists(
        st.builds(
            lambda key: at(key * 7 % 41, key),
            st.integers(0, 60),
        ),
        max_size=8,
    ),
    max_size=8,
)


@given(files, st.integers(1, 30).map(lambda m: m * A_MINUTE))
def test_every_row_has_one_fate_and_nothing_behind_the_door_is_behind_the_watermark(
    landed: list[list[Seen]], lateness: timedelta
) -> None:
    outcome = admit(landed, lateness)

    fates = [*outcome.admitted, *outcome.late, *outcome.duplicates]
    assert sorted(fates, key=lambda row: row.key) == sorted(
        (row for rows in landed for row in rows), key=lambda row: row.key
    )
    assert len({row.key for row in outcome.admitted}) == len(outcome.admitted)
    for count in range(len(landed)):
        before, after = admit(landed[:count], lateness), admit(landed[: count + 1], lateness)
        for row in after.admitted[len(before.admitted) :]:
            assert before.watermark is None or row.event_time > before.watermark
