from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.landing.parcels import cut

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Row:
    at: datetime


def rows(*seconds: float) -> list[Row]:
    return [Row(NOON + timedelta(seconds=second)) for second in seconds]


def test_rows_of_one_span_make_one_parcel_due_at_its_end() -> None:
    parcels = list(cut(rows(0, 59.9, 60, 185), A_MINUTE))

    assert [parcel.rows for parcel in parcels] == [rows(0, 59.9), rows(60), rows(185)]
    assert [parcel.due for parcel in parcels] == [
        NOON + A_MINUTE,
        NOON + 2 * A_MINUTE,
        NOON + 4 * A_MINUTE,
    ]


def test_a_full_parcel_is_due_with_its_last_row() -> None:
    parcels = list(cut(rows(0, 1, 2), A_MINUTE, max_rows=2))

    assert [parcel.rows for parcel in parcels] == [rows(0, 1), rows(2)]
    assert [parcel.due for parcel in parcels] == [NOON + timedelta(seconds=1), NOON + A_MINUTE]


@given(
    st.lists(st.integers(0, 10_000), max_size=50),
    st.integers(1, 5_000),
    st.none() | st.integers(1, 10),
)
def test_every_row_is_in_one_parcel_that_is_not_due_before_it(
    seconds: list[int], span: int, max_rows: int | None
) -> None:
    coming = rows(*sorted(seconds))

    parcels = list(cut(coming, timedelta(seconds=span), max_rows))

    assert [row for parcel in parcels for row in parcel.rows] == coming
    assert [parcel.due for parcel in parcels] == sorted(parcel.due for parcel in parcels)
    for parcel in parcels:
        assert 0 < len(parcel.rows) <= (max_rows or len(coming))
        assert all(row.at <= parcel.due for row in parcel.rows)
        assert parcel.due - parcel.rows[0].at <= timedelta(seconds=span)


def test_parcels_do_not_depend_on_what_came_before() -> None:
    coming = rows(*range(7, 400, 10))
    whole = list(cut(coming, A_MINUTE))

    for begun in range(1, len(whole)):
        rest = coming[sum(len(parcel.rows) for parcel in whole[:begun]) :]
        assert list(cut(rest, A_MINUTE)) == whole[begun:]


@pytest.mark.parametrize(("span", "max_rows"), [(timedelta(0), None), (A_MINUTE, 0)])
def test_parcels_that_cannot_be_cut_are_refused(span: timedelta, max_rows: int | None) -> None:
    with pytest.raises(ValueError, match="cannot be cut"):
        list(cut(rows(1), span, max_rows))
