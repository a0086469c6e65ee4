"""Days that a stream has finished: those it reported, or those that a refreshing one holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from rivermark import Daily, Stream, Table
from rivermark.backfill.finished_days import finished_days
from rivermark.lake.schema import create_table
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.settings import Settings

FIRST = date(2026, 3, 1)
RIDES = Table(name="test/rides", schema="at timestamp", description="Rides.", event_time="at")
COUNTS = Table(
    name="test/counts",
    schema="at timestamp",
    description="Counts.",
    event_time="at",
    days=Daily(column="at", start=FIRST, zone="America/New_York"),
)


def stream(**changes: object) -> Stream:
    return Stream(
        reads=(RIDES,),
        build=lambda rides: rides,
        writes=COUNTS,
        group="test",
        lateness=timedelta(0),
        **changes,  # type: ignore[arg-type]
    )


def test_reported_days_or_days_with_rows(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake, append, refresh = settings.lake(), stream(), stream(kind="refresh")
    assert finished_days(settings, append, COUNTS) == finished_days(settings, refresh, COUNTS) == []
    create_table(lake, COUNTS)
    # Noon of three days in New York, one of them before the first day of the table.
    at = [datetime(2026, 2, 28, 17, tzinfo=UTC) + timedelta(days=n) for n in (0, 1, 4)]
    write_deltalake(lake.path(COUNTS), pa.table({"at": at}), mode="append")

    assert finished_days(settings, append, COUNTS) == []
    summary = StreamSummary(append.name, watermark=datetime(2026, 3, 5, tzinfo=UTC))
    ClosedDays(lake, settings.state).newly_closed(append, summary)

    assert finished_days(settings, append, COUNTS) == [FIRST + timedelta(days=n) for n in range(3)]
    assert finished_days(settings, refresh, COUNTS) == [FIRST, FIRST + timedelta(days=3)]


def test_rows_that_were_merged_before_the_first_day_become_the_first_day(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    lake, append = settings.lake(), stream()
    known = ClosedDays(lake, settings.state)
    create_table(lake, COUNTS)
    for day in (3, 2):
        at = [datetime(2026, 3, day, 17, tzinfo=UTC)]
        write_deltalake(lake.path(COUNTS), pa.table({"at": at}), mode="append")
        finished_days(settings, append, COUNTS)

        assert known.first(append.name) == date(2026, 3, day)

    known.forget(append.name)
    assert known.first(append.name) is None
