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
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
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
