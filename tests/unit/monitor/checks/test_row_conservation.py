from typing import Any

import pytest

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.stream import Ingest
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.unit.conftest import Put

A, B = "rides/a.json", "rides/b.json"


def row(file: str, number: int, batch: int = 0) -> dict[str, Any]:
    return {"_file": file, "_row": number, "_ingest_batch": batch}


def said(file: str, batch: int = 0, **counts: int) -> dict[str, Any]:
    return {"stream": "taxi/rides", "file": file, "ingest_batch": batch, **counts}


def land(put: Put, rides: Ingest, *, lose: str | None = None, double: str | None = None) -> None:
    """File a: 5 rows = 3 admitted + 1 late + 1 set aside; file b: 2 admitted, in the next batch."""
    put(rides.raw, *[row(A, n) for n in range(1, 6)], row(B, 1, 1), row(B, 2, 1))
    verdicts = {
        rides.admitted: [row(A, 1), row(A, 2), row(A, 3), row(B, 1, 1), row(B, 2, 1)],
        rides.late: [row(A, 4)],
        rides.quarantine: [row(A, 5)],
    }
    for table, rows in verdicts.items():
        if table.name == lose:
            rows = rows[1:]
        if table.name == double:
            rows = [rows[0], *rows]
        put(table, *rows)
    put(
        INGEST_FILES,
        said(A, rows=5, admitted=3, late=1, quarantined=1),
        said(B, 1, rows=2, admitted=2, late=0, quarantined=0),
    )


def test_rows_in_are_admitted_late_or_set_aside(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    land(put, rides)

    answer = rows_accounted_for(settings, rides)

    assert answer.passed
    assert answer.numbers == {
        "files": 2,
        "files_wrong": 0,
        "rows_landed": 7,
        "rows_admitted": 5,
        "rows_late": 1,
        "rows_quarantined": 1,
        "rows_folded": 0,
    }


@pytest.mark.parametrize(
    ("fault", "offender"),
    [
        ({"lose": "taxi/rides"}, {"file": A, "landed": 5, "admitted": 2}),
        ({"double": "taxi/rides_late"}, {"file": A, "late": 2}),
    ],
)
def test_a_lost_or_doubled_row_is_found_with_its_file(
    settings: Settings, put: Put, rides: Ingest, fault: dict[str, str], offender: dict[str, Any]
) -> None:
    land(put, rides, **fault)

    answer = rows_accounted_for(settings, rides)

    assert not answer.passed
    assert [{key: o[key] for key in offender} for o in answer.examples] == [offender]


def test_a_row_lost_before_raw_is_found_because_the_door_had_counted_it(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    put(rides.raw, row(A, 1))
    put(rides.admitted, row(A, 1))
    put(rides.late)
    put(rides.quarantine)
    put(INGEST_FILES, said(A, rows=2, admitted=2, late=0, quarantined=0))

    assert not rows_accounted_for(settings, rides).passed


def test_a_batch_under_way_is_neither_here_nor_missing(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    land(put, rides)
    put(rides.raw, row("rides/c.json", 1, 2), row("rides/c.json", 2, 2))

    assert rows_accounted_for(settings, rides).passed


def test_a_file_that_was_set_aside_whole_has_no_rows_to_account_for(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    land(put, rides)
    put(rides.quarantine, {"_file": "rides/cut.gz", "_row": None, "_ingest_batch": 2})
    put(INGEST_FILES, said("rides/cut.gz", 2, rows=0, admitted=0, late=0, quarantined=0))

    answer = rows_accounted_for(settings, rides)
    assert answer.passed
    assert answer.numbers["files"] == 3


def test_a_look_can_be_kept_to_the_newest_batches(
    settings: Settings, put: Put, rides: Ingest
) -> None:
    land(put, rides)

    assert rows_accounted_for(settings, rides, newest_batches=1).numbers["files"] == 1


def test_a_lake_without_rides_has_nothing_to_account_for(settings: Settings, rides: Ingest) -> None:
    assert rows_accounted_for(settings, rides).passed
