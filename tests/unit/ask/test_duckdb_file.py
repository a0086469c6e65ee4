"""A DuckDB file of views: opened by DuckDB alone, it shows what readers of Delta see."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.ask.duckdb_file import write_views
from rivermark.lake.lake import Lake
from rivermark.model.errors import WrongUse
from rivermark.settings import Settings
from tests.unit.ask.conftest import Write, append_sales


def shown(file: Path) -> list[int]:
    with duckdb.connect(str(file), read_only=True) as engine:
        return [n for (n,) in engine.execute("SELECT sale FROM shop.sales ORDER BY 1").fetchall()]


def views(settings: Settings, folder: Path) -> Path:
    write_views(settings.lake(), folder / "lake.duckdb", {})
    return folder / "lake.duckdb"


@pytest.mark.parametrize("folder", ["plain", "it's * one ? of ünï names"])
def test_views_follow_the_table_without_being_written_again(tmp_path: Path, folder: str) -> None:
    settings = Settings(home=tmp_path / folder)
    path = append_sales(settings, 1, 2)
    file = views(settings, tmp_path)
    table = DeltaTable(path)

    assert shown(file) == [1, 2]
    append_sales(settings, 3)
    table.update_incremental()
    table.delete("sale = 1")
    assert shown(file) == [2, 3]
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert shown(file) == [2, 3]
    append_sales(settings, 4, mode="overwrite")
    assert shown(file) == [4]


def test_a_checkpoint_stands_for_the_entries_before_it(
    tmp_path: Path, settings: Settings, write: Write
) -> None:
    path = write(1)
    write(2)
    DeltaTable(path).delete("sale = 1")
    DeltaTable(path).create_checkpoint()
    write(3)
    file = views(settings, tmp_path)

    assert shown(file) == [2, 3]
    for entry in ("00000000000000000000.json", "00000000000000000001.json"):
        Path(path, "_delta_log", entry).unlink()
    write(4)
    assert (
        shown(file) == [2, 3, 4] == sorted(DeltaTable(path).to_pyarrow_table()["sale"].to_pylist())
    )


def test_a_log_that_the_view_cannot_follow_is_an_error_and_not_fewer_rows(
    tmp_path: Path, settings: Settings, write: Write
) -> None:
    path = write(1)
    write(2)
    file = views(settings, tmp_path)
    log = Path(path, "_delta_log")
    DeltaTable(path).create_checkpoint()
    first = log / "00000000000000000000.json"
    kept = first.read_text()

    first.unlink()
    with pytest.raises(duckdb.Error, match="table shop/sales has another log: write this file"):
        shown(file)
    first.write_text(kept)
    assert shown(file) == [1, 2]
    newer = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}
    Path(log, "00000000000000000002.json").write_text(json.dumps(newer))
    with pytest.raises(duckdb.Error, match="another log"):
        shown(file)


def test_a_missing_file_is_an_error(tmp_path: Path, settings: Settings, write: Write) -> None:
    path = write(1)
    write(2)
    file = views(settings, tmp_path)
    Path(DeltaTable(path).file_uris()[0]).unlink()

    with pytest.raises(duckdb.Error, match="a file of table shop/sales is missing"):
        shown(file)


def test_columns_are_those_of_the_table_but_personal_ones(
    tmp_path: Path, settings: Settings, write: Write
) -> None:
    write(1)
    file = tmp_path / "lake.duckdb"

    made, left_out = write_views(settings.lake(), file, {"shop/sales": ("tags",)})

    with duckdb.connect(str(file), read_only=True) as engine:
        columns = engine.execute("DESCRIBE shop.sales").fetchall()
    assert [(name, kind) for name, kind, *_ in columns] == [
        ("sale", "BIGINT"),
        ("at", "TIMESTAMP WITH TIME ZONE"),
        ("amount", "DECIMAL(12,2)"),
    ]
    assert (made, left_out) == (["shop/sales"], {})


def test_what_has_no_view_is_told(tmp_path: Path, settings: Settings, write: Write) -> None:
    path = write(1)
    DeltaTable(path).delete()
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    by_day = settings.lake().path("shop/by_day")
    rows = pa.table({"day": ["a", "b"], "sale": [1, 2]})
    write_deltalake(by_day, rows, partition_by=["day"])

    made, left_out = write_views(settings.lake(), tmp_path / "lake.duckdb", {})

    assert made == []
    assert "no rows yet" in left_out["shop/sales"]
    assert "partitioned" in left_out["shop/by_day"]
    with pytest.raises(WrongUse, match="is not a local folder"):
        write_views(Lake("s3://bucket/lake"), tmp_path / "x.duckdb", {})
    assert [each.name for each in tmp_path.glob("*.tmp")] == []
