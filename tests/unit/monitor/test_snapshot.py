"""One look at the tables: each opened once, and all answers about the same versions."""

from dataclasses import replace

import pytest
from deltalake import DeltaTable

import rivermark.lake.snapshot
from rivermark.backfill.late.hours import newest_moment
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import once_per_snapshot, open_table, open_whole, snapshot
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.monitor import recent_batches
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.monitor.completeness.ingest_day import Day, days_of_ingest
from rivermark.monitor.late_statistics import lateness_of_rows
from rivermark.monitor.lateness_proposal import propose_lateness
from rivermark.monitor.watermarks import watermarks_of
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from tests.oracles.shop import FIRST, PAYMENTS, SHOP, START, sent, write
from tests.unit.conftest import Put
from tests.unit.monitor.conftest import NOON


def test_what_comes_during_a_look_is_for_the_next_one(
    rides: Ingest, settings: Settings, put: Put
) -> None:
    lake, table = settings.lake(), rides.admitted
    put(table, {"ride_id": 1, "at": NOON})

    with snapshot(lake):
        assert open_table(lake, table).count_rows() == 1
        put(table, {"ride_id": 2, "at": NOON.replace(hour=13)})
        assert open_table(lake, table).count_rows() == 1
        assert open_whole(lake, table).num_rows == 1
        assert newest_moment(settings, table, "at") == NOON
        assert [once_per_snapshot(("key",), lambda n=n: n) for n in (1, 2)] == [1, 1]  # type: ignore[misc]

    assert open_table(lake, table).count_rows() == open_whole(lake, table).num_rows == 2
    assert newest_moment(settings, table, "at") == NOON.replace(hour=13)
    assert [once_per_snapshot(("key",), lambda n=n: n) for n in (1, 2)] == [1, 2]  # type: ignore[misc]


def test_a_table_is_listed_once_and_what_tells_of_others_first(
    rides: Ingest, settings: Settings, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def listed(path: str) -> DeltaTable:
        found.append(path)
        return DeltaTable(path)

    for table in (INGEST_FILES, *rides.tables):
        put(table)
    place = {"_file": "1.json", "_ingest_batch": 0, "_row": 1}
    put(rides.raw, place)
    put(rides.admitted, {**place, "ride_id": 1, "at": NOON})
    told = {"stream": rides.name, "file": "1.json", "ingest_batch": 0, "rows": 1, "admitted": 1}
    put(INGEST_FILES, told | {"late": 0, "quarantined": 0})
    monkeypatch.setattr(rivermark.lake.snapshot, "delta_table", listed)

    with snapshot(settings.lake(), INGEST_FILES):
        assert rows_accounted_for(settings, rides).passed
        assert rows_accounted_for(settings, rides).numbers["rows_admitted"] == 1

    assert found[0] == settings.lake().path(INGEST_FILES)
    assert sorted(found) == sorted(settings.lake().path(t) for t in (INGEST_FILES, *rides.tables))


@pytest.mark.parametrize("at_once", [0, 9])
def test_all_rows_are_read_whatever_their_number(
    settings: Settings, put: Put, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Those of files from before a column was added too."""
    monkeypatch.setattr(rivermark.lake.snapshot, "READ_AT_ONCE", at_once)
    put(replace(STREAM_PROGRESS, schema="stream string"), {"stream": "earlier"})
    put(STREAM_PROGRESS, {"stream": "later", "counters": {"fares": 5}})

    progress = open_whole(settings.lake(), STREAM_PROGRESS)

    assert query("SELECT stream, counters FROM progress ORDER BY 1", {"progress": progress}) == [
        {"stream": "earlier", "counters": None},
        {"stream": "later", "counters": {"fares": 5}},
    ]


def test_days_of_an_ingest_are_computed_once_in_a_look(settings: Settings) -> None:
    """The check of its days and the page of the same ones open their files once."""
    write(settings, PAYMENTS, sent(1))
    reached = watermarks_of(settings, SHOP.streams)

    def days() -> list[Day]:
        return days_of_ingest(settings, SHOP, PAYMENTS, FIRST, FIRST, reached)

    with snapshot(settings.lake()):
        assert days() is days()
        earlier = {PAYMENTS.name: START}
        open_then = days_of_ingest(settings, SHOP, PAYMENTS, FIRST, FIRST, earlier)
        assert [day.state for day in open_then] == ["open"]
    assert days() == days()


@pytest.mark.parametrize("at_once", [-1, 1 << 20])
def test_the_newest_batches_are_the_same_however_they_are_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    write(settings, PAYMENTS, sent(2), manifest=False)
    whole = [lateness_of_rows(settings, PAYMENTS), propose_lateness(settings, PAYMENTS)]
    monkeypatch.setattr(recent_batches, "READ_AT_ONCE", at_once)

    with snapshot(settings.lake()):
        assert rows_accounted_for(settings, PAYMENTS).passed
        found = [lateness_of_rows(settings, PAYMENTS), propose_lateness(settings, PAYMENTS)]

    assert found == whole
