"""`rivermark sql`: tables for people, and files for programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from rivermark.model.topology import Topology
from tests.unit.cli.conftest import HOURLY, NOON, ONE, ORDERS, Entry, Run
from tests.unit.conftest import Put

TABLE = HOURLY.outputs[0].table


@pytest.fixture
def hourly(put: Put, shop: Topology) -> None:
    put(TABLE, *({"window_end": NOON + n * ONE, "orders": n} for n in range(1, 4)))


@pytest.mark.usefixtures("hourly")
def test_rows_are_a_table_with_the_version_below(rivermark: Run) -> None:
    shown = rivermark("sql", "SELECT * FROM shop.hourly ORDER BY orders", "--limit", "2").stdout

    assert "2026-03-02 13:00:00       1" in shown
    assert "15:00:00" not in shown
    assert "the first 2 rows; all: --csv, or --out FILE" in shown
    assert "of shop/hourly@1" in shown


@pytest.mark.usefixtures("hourly")
def test_json_is_one_document_and_csv_is_nothing_but_rows(rivermark: Run) -> None:
    query = "FROM shop.hourly SELECT orders, window_end, [orders] AS l ORDER BY 1 LIMIT 1"
    document = json.loads(rivermark("sql", query, "--json").stdout)
    lines = list(csv.reader(io.StringIO(rivermark("sql", query, "--csv").stdout)))

    assert document == {
        "tables": ["shop/hourly@1"],
        "hidden": [],
        "columns": ["orders", "window_end", "l"],
        "rows": [{"orders": 1, "window_end": "2026-03-02T13:00:00+00:00", "l": [1]}],
    }
    assert lines == [["orders", "window_end", "l"], ["1", "2026-03-02 13:00:00.000000Z", "[1]"]]
    assert json.loads(rivermark("sql", "FROM shop.hourly LIMIT 0", "--json").stdout)["rows"] == []


@pytest.mark.usefixtures("hourly")
def test_a_file_has_all_rows_or_is_not_there(rivermark: Run, tmp_path: Path) -> None:
    csv_file, lines, parquet = (
        tmp_path / f"all.{ending}" for ending in ("csv", "jsonl", "parquet")
    )
    for file in (csv_file, lines, parquet):
        assert "3 rows in" in rivermark("sql", "FROM shop.hourly", "--out", str(file)).stdout

    assert csv_file.read_text().count("\n") == 4
    assert [json.loads(line)["orders"] for line in lines.read_text().splitlines()] == [1, 2, 3]
    assert pq.read_table(parquet)["orders"].to_pylist() == [1, 2, 3]
    broken = tmp_path / "broken.csv"
    failing = "SELECT CAST(CASE orders WHEN 3 THEN 'x' ELSE '1' END AS INT) AS n FROM shop.hourly"
    assert rivermark("sql", failing, "--out", str(broken)).exit_code == 1
    assert sorted(each.name for each in tmp_path.glob("*broken*")) == []
    assert rivermark("sql", "FROM shop.hourly", "--out", str(tmp_path / "x.txt")).exit_code == 2


@pytest.mark.usefixtures("hourly")
@pytest.mark.parametrize("arguments", [("FROM shop.hourly", "--out"), ("--views",)])
def test_folders_are_made_and_a_place_for_no_file_is_said(
    rivermark: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "new" / "folder" / "rows.csv"
    assert rivermark("sql", *arguments, str(file)).exit_code == 0
    assert [path.name for path in file.parent.iterdir()] == ["rows.csv"]

    folder = tmp_path / "folder.csv"
    folder.mkdir()
    for place, what in ((folder, folder), (file / "inside.csv", file)):
        refused = rivermark("sql", *arguments, str(place))
        assert refused.exit_code == 2
        said = " ".join(refused.output.split())
        assert f"{place} cannot be written: {what} cannot hold it" in said


@pytest.mark.usefixtures("hourly")
def test_a_file_of_views_is_opened_by_duckdb_alone(rivermark: Run, tmp_path: Path) -> None:
    file = tmp_path / "lake.duckdb"

    written = rivermark("sql", "--views", str(file), "--json").stdout

    assert json.loads(written) == {"file": str(file), "views": ["shop/hourly"], "left_out": []}
    with duckdb.connect(str(file), read_only=True) as engine:
        assert engine.execute("SELECT sum(orders) FROM shop.hourly").fetchall() == [(6,)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a query, or --views FILE"),
        (("FROM shop.hourly", "--views", "x"), "give a query, or --views FILE"),
        (("FROM shop.hourly", "--csv", "--json"), "give one of the two"),
        (("SELECT 1 AS a, 2 AS a", "--json"), "two columns are named 'a'"),
        (("FROM shop.hourlies",), "did you mean 'shop/hourly'"),
        (("DROP TABLE shop.hourly",), "tables are never written to"),
    ],
)
@pytest.mark.usefixtures("hourly")
def test_wrong_use_is_one_sentence(rivermark: Run, arguments: tuple[str, ...], said: str) -> None:
    result = rivermark("sql", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_personal_columns_are_shown_with_the_option_only(
    rivermark: Run, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(TABLE, personal=("orders",))
    topology = Topology([ORDERS, replace(HOURLY, writes=table)])
    monkeypatch.setattr(
        "rivermark.cli.deployment.entry_points", lambda **_: [Entry("default", topology)]
    )
    put(table, {"window_end": NOON, "orders": 12345})

    shown = rivermark("sql", "FROM shop.hourly").stdout
    assert "12345" not in shown
    assert "left out as personal: shop/hourly.orders (--personal)" in shown
    assert "12345" in rivermark("sql", "FROM shop.hourly", "--personal").stdout
