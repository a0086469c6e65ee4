"""Tables at versions and moments, as readers of Delta have them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

import rivermark
from rivermark.model.errors import (
    RivermarkError,
    TableDamaged,
    UnknownStream,
    VersionNotAvailable,
    WrongUse,
)
from rivermark.settings import Settings
from tests.unit.ask.conftest import Write


def test_each_form_has_the_rows_that_delta_rs_has(settings: Settings, write: Write) -> None:
    path = write(1, 2)
    write(3)
    rows = DeltaTable(path).to_pyarrow_table().sort_by("sale")

    found = rivermark.table("shop/sales", home=settings.home)

    assert found.version == 1
    assert found.arrow().sort_by("sale") == rows
    assert found.polars().sort("sale").equals(polars.from_arrow(rows))  # type: ignore[arg-type]
    assert found.pandas().sort_values("sale", ignore_index=True).equals(rows.to_pandas())
    assert found.duckdb().order("sale").to_arrow_table().cast(rows.schema) == rows


def test_a_version_and_a_moment_are_the_rows_of_then(settings: Settings, write: Write) -> None:
    path = write(1)
    write(2, 3)
    write(4, mode="overwrite")
    before = DeltaTable(path).history()[1]["timestamp"] / 1000
    moment = datetime.fromtimestamp(before, UTC)

    def sales(version: int | str | datetime | None) -> list[int]:
        found = rivermark.table("shop/sales", version, home=settings.home)
        return sorted(found.arrow()["sale"].to_pylist())

    assert [sales(v) for v in (0, 1, 2, None)] == [[1], [1, 2, 3], [4], [4]]
    assert sales(moment) == sales(moment.isoformat()) == [1, 2, 3]
    with pytest.raises(VersionNotAvailable, match="there are 0 to 2"):
        sales(9)
    with pytest.raises(RivermarkError, match="expected a version such as 12"):
        sales("yesterday")


def test_a_table_that_was_opened_stays_as_it_was(settings: Settings, write: Write) -> None:
    write(1)
    found = rivermark.table("shop/sales", home=settings.home)
    write(2)

    assert found.arrow()["sale"].to_pylist() == [1]
    assert found.duckdb().fetchall()[0][0] == 1


def test_only_what_is_asked_for_is_read(
    settings: Settings, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(1)
    write(50)
    opened: list[str] = []
    monkeypatch.setattr(
        "rivermark.lake.table_rows.check_data_file", lambda _, name: opened.append(name)
    )

    found = rivermark.table("shop/sales", home=settings.home)
    rows = found.arrow(columns=["sale"], where=pc.field("sale") > 10)

    assert rows.to_pylist() == [{"sale": 50}]
    assert len(opened) == 1 < len(DeltaTable(path).file_uris())


def test_a_name_that_no_table_has_is_told_with_the_nearest(
    settings: Settings, write: Write
) -> None:
    with pytest.raises(UnknownStream, match="has no tables yet"):
        rivermark.table("shop/sales", home=settings.home)
    write(1)
    for name in ("shop/sale", "sales", "../sales"):
        with pytest.raises(UnknownStream, match=r"no table is named .* there are: shop/sales"):
            rivermark.table(name, home=settings.home)
    with pytest.raises(UnknownStream, match="no column 'amout'; did you mean 'amount'"):
        rivermark.table("shop/sales", home=settings.home).arrow(columns=["amout"])


def test_a_damaged_file_is_named_and_none_of_the_others_is_taken_for_all(
    settings: Settings, write: Write
) -> None:
    path = write(1)
    write(2)
    damaged = Path(DeltaTable(path).file_uris()[0])
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    found = rivermark.table("shop/sales", home=settings.home)

    with pytest.raises(TableDamaged, match=damaged.name):
        found.arrow()
    with pytest.raises(Exception, match=damaged.name):
        found.duckdb().fetchall()


def test_what_is_not_installed_is_told(
    settings: Settings, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(1)
    found = rivermark.table("shop/sales", home=settings.home)
    for package in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(RivermarkError, match=f"pip install {package}"):
            getattr(found, package)()


def test_money_is_compared_with_a_decimal_and_a_whole_number_is_refused_in_words(
    settings: Settings, write: Write
) -> None:
    """Arrow compares no decimal with an integer, and says "Precision is not great enough"."""
    write(4, 8)
    sales = rivermark.table("shop/sales", home=settings.home)

    assert sales.arrow(where=pc.field("amount") > Decimal(1)).num_rows == 1
    with pytest.raises(WrongUse, match=r"write it as Decimal\(100\)"):
        sales.arrow(where=pc.field("amount") > 1)
