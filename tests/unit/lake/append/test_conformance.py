"""Tables of ours beside those of delta-rs: every reader finds every row by every bound."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.delta import dataset_of
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import query
from tests.random_tables import Condition, conditions_of, expected, flipped, random_files
from tests.seeds import seeds

Search = Callable[[Condition], list[int]]
TABLES = 8
KANJI = "𠮷野家"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SQL_TYPES = {
    "float": "FLOAT",
    "decimal128(9, 2)": "DECIMAL(9,2)",
    "decimal128(38, 4)": "DECIMAL(38,4)",
}


def ours(path: Path, files: list[pa.Table]) -> DeltaTable:
    """The rows as commits of this process."""
    write_deltalake(str(path), files[0].schema.empty_table())
    committer = DeltaCommitter(str(path))
    for rows in files:
        assert committer.append(rows, {"text": KANJI})
    return DeltaTable(str(path))


def at_once(path: Path, files: list[pa.Table]) -> DeltaTable:
    """The rows as files that were written elsewhere, in one commit."""
    write_deltalake(str(path), files[0].schema.empty_table())
    committer = DeltaCommitter(str(path))
    writer = committer.files()
    assert writer is not None
    adds = [add for rows in files for add in writer.write(rows)]
    assert committer.append_files(adds, {"text": KANJI})
    return DeltaTable(str(path))


def theirs(path: Path, files: list[pa.Table]) -> DeltaTable:
    """The rows as commits of delta-rs."""
    for rows in files:
        write_deltalake(str(path), rows, mode="append")
    return DeltaTable(str(path))


def mixed(path: Path, files: list[pa.Table]) -> DeltaTable:
    """The rows by either in turn."""
    write_deltalake(str(path), files[0].schema.empty_table())
    committer = DeltaCommitter(str(path))
    for i, rows in enumerate(files):
        if i % 2:
            write_deltalake(str(path), rows, mode="append")
        else:
            assert committer.append(rows, {})
    return DeltaTable(str(path))


def ids_of(rows: pa.Table) -> list[int]:
    """The numbers of the rows, ascending."""
    return sorted(rows["id"].to_pylist())


def arrow(rows: ds.Dataset) -> Search:
    """Arrow's own filter, which skips by what the dataset knows of its files."""

    def search(condition: Condition) -> list[int]:
        column = ds.field(condition.column)
        value = pa.scalar(condition.value, rows.schema.field(condition.column).type)
        return ids_of(rows.to_table(columns=["id"], filter=condition.compare(column, value)))

    return search


def duck(rows: ds.Dataset) -> Search:
    """DuckDB over an Arrow dataset, as every query of the platform without Spark."""

    def search(condition: Condition) -> list[int]:
        column = quoted(condition.column)
        if isinstance(condition.value, float) and condition.sign != "<":
            column = f"NOT isnan({column}) AND {column}"  # NaN is the greatest number there.
        kind = rows.schema.field(condition.column).type
        value = f"CAST(? AS {SQL_TYPES[str(kind)]})" if str(kind) in SQL_TYPES else "?"
        sql = f"SELECT id FROM seen WHERE {column} {condition.sign} {value}"  # noqa: S608
        return sorted(r["id"] for r in query(sql, {"seen": rows}, [condition.value]))

    return search


def polars(path: str) -> Search:
    """Polars by its own reader of Delta tables."""

    def search(condition: Condition) -> list[int]:
        frame = pl.scan_delta(path)
        kind = frame.collect_schema()[condition.column]
        column, value = pl.col(condition.column), pl.lit(condition.value, dtype=kind)
        where = condition.compare(column, value)
        if kind.is_float():
            where &= column.is_not_nan()
        return sorted(frame.filter(where).select("id").collect()["id"].to_list())

    return search


def data_fusion(table: DeltaTable) -> Search:
    """DataFusion within delta-rs, which also decides what it deletes."""
    engine = QueryBuilder().register("seen", table)

    def search(condition: Condition) -> list[int]:
        column = quoted(condition.column)
        where = f"{column} {condition.sign} {literal(condition.value)}"
        if isinstance(condition.value, float):
            where += f" AND NOT isnan({column})"
        rows = engine.execute(f"SELECT id FROM seen WHERE {where}").read_all()  # noqa: S608
        return ids_of(pa.table(rows))

    return search


def literal(value: Any) -> str:
    """A value in DataFusion's SQL."""
    match value:
        case bool():
            return str(value)
        case datetime():
            since = (value - EPOCH) // timedelta(microseconds=1)
            return f"arrow_cast({since}, 'Timestamp(Microsecond, Some(\"UTC\"))')"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL(38,4))"
        case float() if math.isinf(value):
            return f"CAST('{value}' AS DOUBLE)"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return repr(value)


def readers(table: DeltaTable, path: Path) -> dict[str, Search]:
    """Every way to look for rows without a JVM."""
    return {
        "dataset_of": arrow(dataset_of(table)),
        "DuckDB": duck(dataset_of(table)),
        "to_pyarrow_dataset": arrow(table.to_pyarrow_dataset()),
        "Polars": polars(str(path)),
        "DataFusion": data_fusion(table),
    }


@pytest.mark.parametrize("seed", seeds(2, TABLES))
@pytest.mark.parametrize("write", [ours, at_once])
def test_every_reader_finds_every_row_of_our_files(
    tmp_path: Path, seed: int, write: Callable[[Path, list[pa.Table]], DeltaTable]
) -> None:
    dice = random.Random(seed)
    files = random_files(dice)
    searches = readers(write(tmp_path, files), tmp_path)
    for condition in conditions_of(files, dice):
        for name, search in searches.items():
            assert search(condition) == expected(files, condition), (name, condition)


@pytest.mark.parametrize("seed", seeds(2, TABLES))
@pytest.mark.parametrize("write", [theirs, mixed])
def test_our_readers_find_every_row_of_files_of_delta_rs(
    tmp_path: Path, seed: int, write: Callable[[Path, list[pa.Table]], DeltaTable]
) -> None:
    dice = random.Random(seed)
    files = random_files(dice)
    rows = dataset_of(write(tmp_path, files))
    for condition in conditions_of(files, dice):
        for name, search in (("dataset_of", arrow(rows)), ("DuckDB", duck(rows))):
            assert search(condition) == expected(files, condition), (name, condition)


@pytest.mark.parametrize(
    "name", ["dataset_of", "DuckDB", "to_pyarrow_dataset", "Polars", "DataFusion"]
)
@pytest.mark.parametrize(
    ("column", "values"),
    [
        pytest.param("v", [KANJI, "𩸽", "𪚥"], id="beyond U+FFFF"),
        pytest.param("v", [2.0, math.nan, 3.0], id="NaN"),
        pytest.param("v", [2.0, math.inf, -math.inf], id="infinity"),
        pytest.param("v", ["x" * 32 + "\U0010ffff" * 2, "x" * 33 + KANJI], id="a cut text"),
        pytest.param("v", [None, None, 2.0], id="only nulls beside"),
        pytest.param("v", [0.0, -0.0, 1.0], id="signed zeros"),
        pytest.param(".𠮷.", ["a", "b"], id="a name that begins with a dot"),
    ],
)
def test_a_value_is_found_by_every_reader(
    tmp_path: Path, name: str, column: str, values: list[Any]
) -> None:
    kind = pa.array([v for v in values if v is not None]).type
    rows = pa.table({"id": range(len(values)), column: pa.array(values, kind)})
    files = [rows, rows.slice(0, 2), rows.slice(2)]
    search = readers(ours(tmp_path, files), tmp_path)[name]
    for value in (v for v in values if v is not None and v == v):
        condition = Condition(column, "=", value)
        assert search(condition) == expected(files, condition), condition


def test_a_delete_by_delta_rs_removes_what_it_names(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "v": [KANJI, "b"]})
    table = ours(tmp_path, [rows])

    assert table.delete(f"v = '{KANJI}'")["num_deleted_rows"] == 1
    assert ids_of(dataset_of(DeltaTable(str(tmp_path))).to_table()) == [2]


def test_the_log_is_utf_8_and_the_commit_s_metadata_plain(tmp_path: Path) -> None:
    ours(tmp_path, [pa.table({"v": [KANJI]})])

    entry = (tmp_path / "_delta_log" / f"{1:020d}.json").read_bytes()
    assert KANJI.encode() in entry
    info, add = (json.loads(line) for line in entry.split(b"\n") if line)
    assert json.loads(info["commitInfo"]["userMetadata"]) == {"text": KANJI}
    assert json.loads(add["add"]["stats"])["minValues"] == {"v": KANJI}


def test_one_flipped_bit_of_a_page_is_never_another_row(tmp_path: Path) -> None:
    rows = pa.table({"id": range(50), "v": [f"text {i}" for i in range(50)]})
    table = ours(tmp_path, [rows])
    file = next(tmp_path.glob("*.parquet"))
    raised = 0
    for damaged in flipped(file.read_bytes(), random.Random(1), 200):
        file.write_bytes(damaged)
        try:
            assert dataset_of(table).to_table().equals(rows)
        except (OSError, pa.ArrowException):
            raised += 1
    assert raised > 100
