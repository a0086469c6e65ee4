"""Queries over a lake: what they can name, what they cannot reach, what is said of mistakes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable

from rivermark.ask.sql import query_result
from rivermark.model.errors import RivermarkError, TableDamaged, UnknownStream, WrongUse
from rivermark.settings import Settings
from tests.unit.ask.conftest import Write


def ask(settings: Settings, sql: str, **how: Any) -> list[dict[str, Any]]:
    with query_result(settings.lake(), sql, **how) as result:
        return list(result.batches.read_all().to_pylist())


def test_a_table_has_its_name_in_three_spellings(settings: Settings, write: Write) -> None:
    write(1, 2)

    for name in ("shop.sales", '"shop/sales"', "Shop.Sales"):
        assert ask(settings, f"FROM {name} SELECT sum(sale) AS sales") == [{"sales": 3}]


def test_tables_of_deeper_names_are_told_how_to_write_them(
    settings: Settings, write: Write
) -> None:
    write(1, name="shop/north/sales")

    assert len(ask(settings, 'FROM shop."north/sales"')) == 1
    with pytest.raises(WrongUse, match=r'is shop\."north/sales"'):
        ask(settings, "FROM shop.north.sales")


def test_versions_and_moments_stand_in_the_name_or_hold_for_all(
    settings: Settings, write: Write
) -> None:
    path = write(1)
    write(2)
    moment = datetime.fromtimestamp(DeltaTable(path).history()[1]["timestamp"] / 1000, UTC)

    gone = 'SELECT sale FROM shop.sales EXCEPT SELECT sale FROM "shop/sales@0"'
    assert ask(settings, gone) == [{"sale": 2}]
    assert len(ask(settings, f'FROM "shop/sales@{moment.isoformat()}"')) == 1
    assert [len(ask(settings, "FROM shop.sales", at=v)) for v in (0, 1)] == [1, 2]
    with query_result(settings.lake(), gone) as result:
        assert sorted(result.tables) == ["shop/sales@0", "shop/sales@1"]


def test_names_of_a_query_s_own_are_not_of_the_lake(settings: Settings, write: Write) -> None:
    write(1)

    assert ask(settings, "WITH shop AS (SELECT 1 AS x) FROM shop") == [{"x": 1}]
    assert len(ask(settings, "SUMMARIZE shop.sales")) == 4
    assert ask(settings, "SELECT (SELECT count(*) FROM shop.sales) AS n") == [{"n": 1}]


@pytest.mark.parametrize(
    "reach",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM read_parquet('https://127.0.0.1:9/x')",
        "SELECT * FROM settings",
        "COPY (SELECT 1) TO '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '{file}'",
        "SET enable_external_access = true",
        "DELETE FROM shop.sales",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; COPY (SELECT 1) TO '{file}'",
    ],
)
def test_a_query_reaches_the_tables_and_nothing_else(
    settings: Settings, write: Write, tmp_path: Path, reach: str
) -> None:
    write(1)
    file = tmp_path / "secret.csv"
    file.write_text("secret\n1\n")

    with pytest.raises(RivermarkError):
        ask(settings, reach.format(file=file))

    assert file.read_text() == "secret\n1\n"
    assert len(ask(settings, "FROM shop.sales")) == 1


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("FROM shop.sale", "no table is named 'shop/sale'; did you mean 'shop/sales'"),
        ("FROM sales", "no table is named 'sales'; did you mean 'shop/sales'"),
        ("SELECT amout FROM shop.sales", r'"amout" not found.*amount'),
        ("SELEC 1", "this is not valid SQL: .*SELEC"),
        ("", "write one query that only reads"),
        ("SELECT 1; SELECT 2", "write one query that only reads"),
        ("DROP VIEW x", "tables are never written to"),
        ("SELECT CAST('x' AS INT)", "Could not convert"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    settings: Settings, write: Write, mistake: str, said: str
) -> None:
    write(1)

    with pytest.raises(RivermarkError, match=said) as error:
        ask(settings, mistake)
    assert "\n" not in str(error.value)


def test_an_unknown_table_is_wrong_use(settings: Settings) -> None:
    with pytest.raises(UnknownStream):
        ask(settings, "FROM shop.sales")


def test_personal_columns_are_not_there(settings: Settings, write: Write) -> None:
    write(1)
    hidden = {"shop/sales": ("tags",)}

    assert "tags" not in ask(settings, "FROM shop.sales", hidden=hidden)[0]
    with query_result(settings.lake(), "FROM shop.sales", hidden=hidden) as result:
        assert result.hidden == ("shop/sales.tags",)
    with pytest.raises(RivermarkError, match=r"left out as personal: shop/sales\.tags"):
        ask(settings, "SELECT tags FROM shop.sales", hidden=hidden)


def test_a_damaged_file_is_told_before_any_row_of_it(settings: Settings, write: Write) -> None:
    path = write(1)
    damaged = Path(DeltaTable(path).file_uris()[0])
    damaged.write_bytes(damaged.read_bytes()[:100])

    with pytest.raises(TableDamaged, match=damaged.name):
        ask(settings, "SELECT sum(amount) FROM shop.sales")


def test_a_large_result_comes_in_parts(settings: Settings, write: Write) -> None:
    write(1)
    many = "SELECT range, repeat('x', 1000) AS text FROM range(400000), shop.sales"
    before = psutil.Process().memory_info().rss

    rows = 0
    with query_result(settings.lake(), many) as result:
        for batch in result.batches:
            rows += batch.num_rows
    grown = psutil.Process().memory_info().rss - before

    assert rows == 400_000
    assert grown < 150 << 20, f"{grown >> 20} MiB for 400 MB of text"
