"""Repeated keys are found in what was added, wherever their first row lies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark import Daily, Table
from rivermark.lake import repeated_keys as module
from rivermark.lake.delta import dataset_of
from rivermark.lake.repeated_keys import files_with_new_rows, repeated_keys, repeated_since
from rivermark.lake.sql import connection, spilling_connection
from rivermark.lake.table_rows import TableRows
from rivermark.settings import Settings

START = datetime(2024, 1, 1, tzinfo=UTC)
HOURS = Table(
    name="test/hours",
    schema="zone string, hour timestamp, n long",
    description="Hours.",
    keys=("zone", "hour"),
    days=Daily("hour", START.date()),
)


def add(folder: Path, *rows: tuple[str | None, int], mode: Any = "append", **more: Any) -> None:
    content = pa.table(
        {
            "zone": pa.array([zone for zone, _ in rows], pa.string()),
            "hour": pa.array(
                [START + timedelta(hours=n) for _, n in rows], pa.timestamp("us", "UTC")
            ),
            "n": [1] * len(rows),
        }
    )
    write_deltalake(folder, content, mode=mode, **more)


def found(folder: Path, since: int | None) -> list[tuple[str | None, int]]:
    rows = dataset_of(DeltaTable(folder))
    return [(r["zone"], r["copies"]) for r in repeated_since(rows, str(folder), HOURS, since)]


@pytest.fixture
def year(tmp_path: Path) -> Path:
    for n in range(20):
        add(tmp_path, ("a", n), ("b", n))
    return tmp_path


def test_a_key_is_found_again_wherever_it_lies(year: Path) -> None:
    assert found(year, None) == found(year, 19) == []
    add(year, ("a", 3), ("a", 30))
    assert found(year, 19) == found(year, None) == [("a", 2)]
    add(year, ("b", 30), ("b", 30), (None, 1))
    assert found(year, 20) == [("b", 2)]
    add(year, (None, 1))
    assert found(year, 21) == [(None, 2)]


def test_only_files_that_may_hold_a_new_key_are_opened(
    year: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: set[int] = set()
    own = TableRows._opened

    def seen(rows: TableRows, indexes: Any) -> Any:
        chosen = [*indexes]
        opened.update(chosen)
        return own(rows, chosen)

    monkeypatch.setattr(TableRows, "_opened", seen)
    add(year, ("a", 7), ("a", 40))
    add(year, ("c", 8))
    assert found(year, 20) == []
    assert len(opened) == 1  # No other file has a zone 'c'.
    opened.clear()
    add(year, ("b", 8))
    assert found(year, 21) == [("b", 2)]
    assert len(opened) == 2  # The new one, and that of the hour 8.


def test_of_a_large_table_the_days_of_the_new_rows_are_looked_at(
    year: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_zone = Table(
        name="test/hours", schema=HOURS.schema, description="H.", keys=("zone",), days=HOURS.days
    )
    add(year, ("a", 50))
    rows = dataset_of(DeltaTable(year))
    assert repeated_since(rows, str(year), by_zone, 19) == [{"zone": "a", "copies": 21}]
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    assert repeated_since(rows, str(year), by_zone, 19) == []
    assert len(repeated_keys(rows, ("zone",))) == 2


def test_copies_hold_new_rows_only_where_what_they_copy_did(year: Path) -> None:
    table = DeltaTable(year)
    table.optimize.compact()
    assert files_with_new_rows(str(year), 19, table.version()) == set()
    add(year, ("a", 3))
    add(year, ("a", 33))
    table = DeltaTable(year)
    table.optimize.compact()

    files = files_with_new_rows(str(year), 20, table.version())
    assert files == {*dataset_of(table).files}
    assert found(year, 20) == [("a", 2)]


def test_days_that_were_replaced_are_new_and_without_their_log_all_is(year: Path) -> None:
    add(year, ("a", 5), ("a", 5), mode="overwrite", predicate="hour = '2024-01-01T05:00:00Z'")
    assert found(year, 19) == [("a", 2)]
    (year / "_delta_log" / f"{20:020d}.json").rename(year / "gone")
    assert files_with_new_rows(str(year), 19, 20) is None
    (year / "gone").rename(year / "_delta_log" / f"{20:020d}.json")


def test_what_exceeds_the_memory_goes_to_the_folder_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Settings(home=tmp_path / "home", query_memory="64m", query_threads=2).lake()
    left = tmp_path / "home" / "state" / "queries" / "99999999"
    left.mkdir(parents=True)  # Of a process that was killed.
    held = "SELECT current_setting($name) AS value"

    for opened in (connection, spilling_connection):
        with opened({}) as duck:
            folder = duck.execute(held, {"name": "temp_directory"}).fetchall()[0][0]
            assert Path(folder).parent == left.parent
            duck.execute(
                "SELECT count(DISTINCT hash(range) || 'a long text beside') FROM range(3000000)"
            )
            assert duck.execute(held, {"name": "threads"}).fetchall()[0][0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert not left.exists()
