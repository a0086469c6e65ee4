"""Declarations of sinks to PostgreSQL: what is refused, and what is shown, without a server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql.types import DayTimeIntervalType, StructField, StructType

from rivermark import DeclarationError, RivermarkError, Table
from rivermark.connect.postgres import Database
from rivermark.lake.lake import Lake
from rivermark.sinks import PostgresAppend, PostgresUpsert
from tests.unit.sinks.conftest import FARES, context

URI = "postgresql://ops@db.example:5432/shop"


@pytest.mark.parametrize(
    ("database", "settings"),
    [
        ("postgresql://ops:hunter2@db.example/shop", {}),
        ("postgresql://db.example/shop?user=ops&password=hunter2", {}),
        ("host=db.example user=ops password = hunter2", {}),
        (URI, {"password": "hunter2"}),
        (URI, {"sslpassword": "hunter2"}),
    ],
)
def test_a_password_in_a_declaration_is_refused_and_not_repeated(
    database: str, settings: dict[str, str]
) -> None:
    with pytest.raises(DeclarationError, match="a password does not belong in a decl") as raised:
        PostgresAppend(table="fares", database=database, settings=settings)
    assert "hunter2" not in str(raised.value)


def test_what_is_shown_of_a_sink_names_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = PostgresUpsert(
        table="fares", database="$SHOP", version="at", settings={"password": "$SHOP_PASSWORD"}
    )
    assert sink.described() == (
        "table fares of PostgreSQL $SHOP, latest row of each key by at: exactly once, by a "
        "transaction that holds rows and batch; a recompute merges"
    )
    assert repr(sink) == (
        "PostgresUpsert(table='fares', database='$SHOP', version='at', deleted=None, key=())"
    )
    assert PostgresAppend(table="fares").described().startswith("table fares of PostgreSQL: ")
    monkeypatch.setenv("SHOP", "host=db.example password=hunter2 hunter3")
    pytest.importorskip("psycopg")
    with pytest.raises(RivermarkError, match="no connection string of libpq") as raised:
        Database("$SHOP", {}).connection_settings("test")
    assert "hunter" not in str(raised.value)


def test_tables_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(DeclarationError, match="not a column of it"):
        PostgresUpsert(table="fares", version="moment").check(FARES)
    with pytest.raises(DeclarationError, match="at most 38 bytes"):
        PostgresAppend(table="f" * 39)
    with pytest.raises(DeclarationError, match=r"a table or schema\.table"):
        PostgresAppend(table="shop.old.fares")
    spans = StructType([StructField("span", DayTimeIntervalType())])
    table = Table(name="test/spans", schema=spans, description="Spans.")
    with pytest.raises(DeclarationError, match="'span' is of type interval day to second, which"):
        PostgresAppend(table="spans").check(table)


def test_writing_without_the_client_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, where = PostgresAppend(table="fares"), context(Lake(str(tmp_path)))
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RivermarkError, match=r"writing to table fares .*'rivermark\[postgres\]'"):
        sink.open(where)
