"""Rows that commits brought, read without an engine: all of them, or none where more came."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.lake import Lake
from rivermark.model.errors import TableDamaged
from rivermark.runtime.query.ingest import added_rows
from tests.unit.lake.conftest import RIDES, Foreign, rides

COLUMNS = arrow_schema(RIDES.schema)


def read(lake: Lake, commits: range) -> list[int] | None:
    rows = added_rows(lake.path(RIDES), commits, COLUMNS)
    if rows is None:
        return None
    assert rows.schema == COLUMNS
    found: list[int] = rows["id"].to_pylist()
    return found


def test_the_rows_of_a_span_of_commits_are_read_in_their_order(lake: Lake) -> None:
    appender = DeltaCommitter(lake.path(RIDES))
    for first in (1, 3, 5):
        assert appender.append(pa.concat_tables([rides(first), rides(first + 1)]), {})

    assert read(lake, range(1, 4)) == [1, 2, 3, 4, 5, 6]
    assert read(lake, range(2, 3)) == [3, 4]
    assert read(lake, range(2, 2)) == []


def test_rows_of_another_writer_are_read_too(lake: Lake, foreign: Foreign) -> None:
    foreign()

    assert len(read(lake, range(1, 2)) or []) == 1


@pytest.mark.parametrize("what", ["columns", "rewritten", "not there", "no file"])
def test_nothing_is_read_where_more_than_rows_came(lake: Lake, what: str) -> None:
    path = lake.path(RIDES)
    appender = DeltaCommitter(path)
    assert appender.append(rides(1), {})
    assert appender.append(rides(2), {})
    last = 3
    match what:
        case "columns":
            last = 1  # The first entry declares them.
        case "rewritten":
            DeltaTable(path).optimize.compact()
            last = 4
        case "not there":
            last = 4
        case _:
            for file in Path(path).glob("*.parquet"):
                file.unlink()

    assert read(lake, range(last - 1, last)) is None


def test_a_cut_entry_is_refused(lake: Lake) -> None:
    path = lake.path(RIDES)
    assert DeltaCommitter(path).append(rides(1), {})
    entry = Path(path, "_delta_log", f"{1:020d}.json")
    lines = entry.read_text().splitlines()
    assert "commitInfo" in json.loads(lines[0])
    entry.write_text(lines[0] + "\n")

    with pytest.raises(TableDamaged, match="was cut"):
        read(lake, range(1, 2))
