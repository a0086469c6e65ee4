"""A Delta table outside the lake as a source: by appends, and by its change data feed."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType

from rivermark import Contract, Field, Ingest, RivermarkError
from rivermark.model.source import PlannedSplit
from rivermark.sources import DeltaSource, Source
from tests.spark.helpers.source_contract import EVENT, Deployment, SourceContract, event

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
FEED = {"delta.enableChangeDataFeed": "true"}


def append(root: Path, numbers: range, properties: dict[str, str | None] | None = None) -> None:
    """Append events to the table, in one commit."""
    rows = pa.Table.from_pylist([event(n) for n in numbers], SCHEMA)
    write_deltalake(root / "elsewhere", rows, mode="append", configuration=properties)


class TestAppends(SourceContract):
    """Rows that are appended."""

    def source(self, root: Path) -> Source:
        return DeltaSource(table=str(root / "elsewhere"))

    def produce(self, root: Path, numbers: range) -> None:
        append(root, numbers)


class TestFeed(SourceContract):
    """The same rows, by the change data feed."""

    def source(self, root: Path) -> Source:
        return DeltaSource(table=str(root / "elsewhere"), changes="feed")

    def produce(self, root: Path, numbers: range) -> None:
        append(root, numbers, dict(FEED))


def ingest_of(source: Source) -> Ingest:
    fields = (*EVENT.fields, Field("change", StringType(), ("_change_type",)))
    fields += (Field("version", LongType(), ("_commit_version",)),)
    return Ingest(
        name="test/changes",
        source=source,
        contract=Contract(fields=fields, event_time="at", max_ahead=EVENT.max_ahead),
        lateness=None,
        description="Changes.",
        group="test",
    )


@pytest.mark.parametrize(
    "driver_bytes",
    [
        pytest.param(None, id="in the driver"),
        pytest.param(0, id="on Spark", marks=pytest.mark.long),
    ],
)
def test_updates_and_deletes_are_followed(
    spark: SparkSession, tmp_path: Path, driver_bytes: int | None
) -> None:
    source = DeltaSource(table=str(tmp_path / "elsewhere"), changes="feed")
    deployment = Deployment(spark, tmp_path, ingest_of(source))
    append(tmp_path, range(3), dict(FEED))
    deployment.run(driver_bytes)
    table = DeltaTable(tmp_path / "elsewhere")
    table.update({"id": "id + 10"}, predicate="id = 1")
    table.delete("id = 2")
    table.optimize.compact()
    deployment.run(driver_bytes)

    rows = deployment.rows(deployment.ingest.admitted)
    assert sorted((r["version"], r["change"], r["id"]) for r in rows) == [
        (0, "insert", 0),
        (0, "insert", 1),
        (0, "insert", 2),
        (1, "update_postimage", 11),
        (1, "update_preimage", 1),
        (2, "delete", 2),
    ]


def test_an_update_that_appends_would_miss_ends_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = DeltaSource(table=str(tmp_path / "elsewhere"))
    deployment = Deployment(spark, tmp_path, ingest_of(source))
    append(tmp_path, range(3))
    deployment.run()
    DeltaTable(tmp_path / "elsewhere").delete("id = 2")

    with pytest.raises(RivermarkError, match=r"version 1 .* deletes rows \(DELETE\).*'feed'"):
        deployment.run()


def test_versions_that_were_removed_from_the_log_end_the_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = DeltaSource(table=str(tmp_path / "elsewhere"), from_version=0)
    deployment = Deployment(spark, tmp_path, ingest_of(source))
    append(tmp_path, range(2))
    deployment.run()
    for n in range(2, 5):
        append(tmp_path, range(n, n + 1))
    DeltaTable(tmp_path / "elsewhere").create_checkpoint()
    for version in (0, 1, 2):
        (tmp_path / "elsewhere" / "_delta_log" / f"{version:020d}.json").unlink()

    with pytest.raises(RivermarkError, match=r"versions 1 to 2 .* removed from its log"):
        deployment.run()


def test_a_table_without_a_change_data_feed_cannot_be_followed(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, range(1))
    source = DeltaSource(table=str(tmp_path / "elsewhere"), changes="feed")

    with pytest.raises(RivermarkError, match="enableChangeDataFeed=true"):
        Deployment(spark, tmp_path, ingest_of(source)).run()


def test_partitioned_tables_give_all_their_columns(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.table(
        {"id": [1, 2], "at": pa.array([event(1)["at"], event(2)["at"]], SCHEMA.field("at").type)}
    )
    for place in ("first", "second"):
        labelled = rows.append_column("_change_type", pa.array([place, place]))
        write_deltalake(
            tmp_path / "elsewhere", labelled, mode="append", partition_by=["_change_type"]
        )
    source = DeltaSource(table=str(tmp_path / "elsewhere"), from_version=0)
    deployment = Deployment(spark, tmp_path, ingest_of(source))
    deployment.run()

    found = sorted((r["change"], r["id"]) for r in deployment.rows(deployment.ingest.admitted))
    assert found == [("first", 1), ("first", 2), ("second", 1), ("second", 2)]


@pytest.mark.long
@pytest.mark.parametrize("changes", ["appends", "feed"])
def test_a_row_is_the_same_in_pieces_of_any_size_and_where_spark_reads_it(
    spark: SparkSession,
    tmp_path: Path,
    changes: Literal["appends", "feed"],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one of Parquet: floats by their shortest text, bytes as text where they are UTF-8."""
    columns = {
        "float": pa.array([0.0025, None, float("nan")], pa.float32()),
        "double": pa.array([1e-5, 1e22, float("-inf")]),
        "amount": pa.array([Decimal("1.10"), None, Decimal(-1)], pa.decimal128(38, 18)),
        "Note": pa.array([b"n", b"\xe9", None]),
        "geom": pa.array([b"n", b"\xe9", None]),
        "at": pa.array([-1, 0, 1], pa.timestamp("us", "UTC")),
        "list": pa.array([[{"a": 1.5}], [], None]),
    }
    table = tmp_path / "elsewhere"
    write_deltalake(table, pa.table(columns), configuration=dict(FEED))
    reader = DeltaSource(table=str(table), changes=changes).open("")
    reader.expect({"note"})
    now = datetime.now(UTC)
    splits = [PlannedSplit(**vars(s), batch=0, landed_at=now) for s in reader.discover().ready]
    write_deltalake(table, pa.table(columns), mode="append")
    reader.planned(splits)
    splits += [PlannedSplit(**vars(s), batch=1, landed_at=now) for s in reader.discover().ready]

    def read(most: int) -> list[str]:
        parts = [r for piece in reader.pieces(spark, splits, most) for r in reader.read(piece)]
        return [text for each in parts for text in each.rows["payload"].to_pylist()]

    def refuse(*_: object) -> None:
        raise DeltaProtocolError("a feature that Spark alone reads")

    payloads = read(1 << 20)
    assert read(1) == payloads
    monkeypatch.setattr("rivermark.ingest.source.delta_table_reader.dataset_of", refuse)
    monkeypatch.setattr("rivermark.ingest.source.delta_table_reader.DeltaReader._changes", refuse)
    assert sorted(read(1)) == sorted(payloads)
    assert [payload.split(',"at"')[0] for payload in payloads[:3]] == [
        '{"float":0.0025,"double":0.00001,"amount":1.100000000000000000,"Note":"n","geom":"n"',
        '{"double":1e22,"Note":"\ufffd","geom":"6Q=="',
        '{"float":"NaN","double":"-Infinity","amount":-1.000000000000000000',
    ]
