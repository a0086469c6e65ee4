from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
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


CASES: dict[str, tuple[int, list[list[Seen]], list[Seen], list[Seen], list[Seen]]] = {
    "a row as old as the watermark is late": (
        5, [[at(10, 1)], [at(5, 2), at(5.001, 3)]], [at(10, 1), at(5.001, 3)], [at(5, 2)], [],
    ),
    "rows of one file are not late by each other": (
        1, [[at(60, 1), at(0, 2)]], [at(60, 1), at(0, 2)], [], [],
    ),
    "a late row does not move the watermark": (
        1, [[at(10, 1)], [at(1, 2)], [at(9.5, 3)]], [at(10, 1), at(9.5, 3)], [at(1, 2)], [],
    ),
    "the second of a key is a duplicate in the same file and in a later one": (
        5, [[at(1, 1), at(1, 1)], [at(1, 1), at(2, 2)]], [at(1, 1), at(2, 2)], [], [at(1, 1)] * 2,
    ),
    "a copy that comes too late is late and no duplicate": (
        5, [[at(1, 1)], [at(9, 2)], [at(1, 1)]], [at(1, 1), at(9, 2)], [at(1, 1)], [],
    ),
    "nothing landed means no watermark": (1, [[], []], [], [], []),
}  # fmt: skip


@pytest.mark.parametrize(
    ("minutes", "landed", "admitted", "late", "duplicates"), CASES.values(), ids=CASES
)
def test_each_landed_row_has_its_fate(
    minutes: int,
    landed: list[list[Seen]],
    admitted: list[Seen],
    late: list[Seen],
    duplicates: list[Seen],
) -> None:
    outcome = admit(landed, lateness=minutes * A_MINUTE)

    assert (outcome.admitted, outcome.late, outcome.duplicates) == (admitted, late, duplicates)
    newest = max((row.event_time for row in admitted), default=None)
    assert outcome.newest == newest
    assert outcome.watermark == (newest - minutes * A_MINUTE if newest else None)


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
