"""M015: a constraint that another tool gave a table is named, and no value of its rows is shown."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark import Daily, Table
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin

TABLE = Table(
    name="test/sums",
    schema="day date, n long, who string",
    description="s",
    days=Daily("day", date(2024, 3, 1)),
    personal=("who",),
)
DAY = date(2024, 3, 1)


def rows(*numbers: int | None) -> pa.Table:
    days = pa.array([DAY] * len(numbers), pa.date32())
    return pa.table(
        {"day": days, "n": pa.array(numbers, pa.int64()), "who": ["ann"] * len(numbers)}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(str(tmp_path))
    create_table(made, TABLE)
    DeltaTable(made.path(TABLE)).alter.add_constraint({"positive": "n > 0"})
    return made


def test_m015_a_batch_that_a_foreign_constraint_refuses_names_it(lake: Lake) -> None:
    writer = TableWriter(lake, TABLE, Origin("test/sums", 0, datetime.now(UTC), "run"))
    assert writer.append_once(rows(1), 0)

    with pytest.raises(RivermarkError, match=r"positive: n > 0 \(2 rows\).*DROP CONSTRAINT") as e:
        writer.append_once(rows(-5, None, 2), 1)

    assert "ann" not in str(e.value)
    assert e.value.__cause__ is None
    assert "|" not in str(e.value)
    assert writer.append_once(rows(3), 1)
    assert DeltaTable(lake.path(TABLE)).to_pyarrow_table()["n"].to_pylist() in ([3, 1], [1, 3])


def test_m015_a_recompute_that_a_foreign_constraint_refuses_names_it(lake: Lake) -> None:
    assert replace_days(lake, TABLE, rows(1, 2), [DAY], {}) == 2

    with pytest.raises(RivermarkError, match=r"'test/sums' has constraints.*positive: n > 0"):
        replace_days(lake, TABLE, rows(-1), [DAY], {})

    assert DeltaTable(lake.path(TABLE)).to_pyarrow_table().num_rows == 2
