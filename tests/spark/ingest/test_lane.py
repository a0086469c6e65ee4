"""The fast lane and the parser alone make the same of every line, in the driver and on workers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rivermark import Contract
from rivermark.ingest.parse.driver_parser import DriverParser
from rivermark.ingest.parse.parser import DETAILS, Parser
from rivermark.ingest.parse.rules import PROBLEMS
from rivermark.ingest.source.files.parquet import parquet_records
from rivermark.ingest.source.payload import TypedRecords, joined
from rivermark.model.contract import FLAGS
from rivermark.model.source import Columns
from tests.oracles.columns_of_contracts import rows
from tests.oracles.lines_of_contracts import (
    CSV_COLUMNS,
    EVERYTHING,
    csv_lines,
    json_lines,
    nested_lines,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lines_of(
    payloads: Sequence[str], kind: str = "json", columns: Sequence[str] | None = None
) -> pa.Table:
    """Lines of one file, as admission hands them to a parser."""
    head = ",".join(columns) if columns else None
    known = {
        "_file": ("x.json", pa.string()),
        "_ingest_batch": (0, pa.int64()),
        "_ingested_at": (NOW, pa.timestamp("us", "UTC")),
        "_landed_at": (NOW, pa.timestamp("us", "UTC")),
        "_arrival": (0, pa.int32()),
        "_format": (kind, pa.string()),
        "_columns": (json.dumps(columns) if columns else None, pa.string()),
        "_head": (head, pa.string()),
    }
    count = len(payloads)
    table = pa.table({n: pa.array([value] * count, t) for n, (value, t) in known.items()})
    table = table.append_column("_row", pa.array(range(1, count + 1), pa.int64()))
    return table.append_column("payload", pa.array(payloads, pa.string()))


def exact(values: pa.ChunkedArray) -> list[Any]:
    """Values that are equal only where their bits are."""
    if pa.types.is_floating(values.type):
        return [None if v is None else float(v).hex() for v in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())  # Some are beyond what Python has.
    plain: list[Any] = values.to_pylist()
    return plain


def assert_same(payloads: Sequence[str], got: pa.Table, wanted: pa.Table, names: list[str]) -> None:
    for name in names:
        pairs = zip(exact(got[name]), exact(wanted[name]), payloads, strict=True)
        differ = [(line, a, b) for a, b, line in pairs if a != b]
        assert not differ, f"{name}: {differ[:3]}"


def compare(
    spark: SparkSession,
    contract: Contract,
    lines: pa.Table,
    least_typed: float = 0.0,
    known: Sequence[Columns] = (),
) -> None:
    judged = DriverParser(spark, Parser(contract, ",")).parse(lines, known)
    judged_far = Parser(contract, ",").parse(spark.createDataFrame(lines)).toArrow()
    # Rules are asked behind the parser.
    parser = Parser(replace(contract, rules=()), ",")
    driver = DriverParser(spark, parser)
    got, wanted = driver.parse(lines, known), driver.parse_doubtful(lines)
    # What was read of one batch is remembered for the next.
    assert driver.parse(lines, known).equals(got)
    payloads = lines["payload"].to_pylist()
    assert_same(payloads, got, wanted, ["_record"])
    record = wanted["_record"]
    names = [*(f.name for f in contract.fields), FLAGS, PROBLEMS, DETAILS]
    payloads = lines["payload"].filter(record).to_pylist()
    wanted = wanted.filter(record)
    assert_same(payloads, got.filter(record), wanted, names)
    by_rules = judged_far.sort_by("_row").filter(record)
    assert_same(payloads, judged.filter(record), by_rules, [FLAGS, PROBLEMS])
    far = parser.parse(spark.createDataFrame(lines)).toArrow().sort_by("_row").filter(record)
    assert_same(payloads, far, wanted, names)
    payload, kinds, columns = (
        lines[n].combine_chunks() for n in ("payload", "_format", "_columns")
    )
    typed = parser.lane(spark).type(payload, kinds, columns, known)
    assert typed.good.mean() >= least_typed


ROUNDS = pytest.mark.parametrize(
    ("seed", "count"), [(0, 1_000), pytest.param(1, 6_000, marks=pytest.mark.long)]
)


@ROUNDS
def test_both_make_the_same_of_json_lines(spark: SparkSession, seed: int, count: int) -> None:
    compare(spark, EVERYTHING, lines_of([*json_lines(seed, count)]), least_typed=0.5)


@ROUNDS
def test_both_make_the_same_of_objects_in_json_lines(
    spark: SparkSession, seed: int, count: int
) -> None:
    compare(spark, EVERYTHING, lines_of([*nested_lines(seed, count)]), least_typed=0.3)


@ROUNDS
def test_both_make_the_same_of_csv_lines(
    spark: SparkSession, seed: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Some at a time, as of millions.
    monkeypatch.setattr("rivermark.ingest.parse.driver_parser.ROWS", count // 5)
    lines = lines_of([*csv_lines(seed, count)], "csv", CSV_COLUMNS)
    compare(spark, EVERYTHING, lines, least_typed=0.4)


@ROUNDS
def test_both_make_the_same_of_rows_of_parquet(
    spark: SparkSession, tmp_path: Path, seed: int, count: int
) -> None:
    wanted = {name.lower() for name in EVERYTHING.spellings()}
    parts: list[TypedRecords] = []
    for part, size in enumerate((count // 2, count, *[count // 40] * 10)):
        path = tmp_path / f"{part}.parquet"
        table = pa.table(rows(1_000 * seed + part, size))
        pq.write_table(table, path, use_deprecated_int96_timestamps=part % 4 == 3)
        parts += parquet_records(str(path), wanted)
    records = joined(parts)
    lines = lines_of(records.payloads.to_pylist(), "parquet")
    compare(spark, EVERYTHING, lines, 0.2, records.columns)
    assert sum(known.rows.num_rows for known in records.columns) > count
