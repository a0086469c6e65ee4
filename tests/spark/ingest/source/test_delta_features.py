"""Tables of other writers, with the features of the Delta protocol that Spark can write.

Read as Spark reads them, in pieces of any size, or refused with a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from rivermark import RivermarkError
from rivermark.lake.integrity.data_file_faults import data_file_problem, data_files
from rivermark.lake.integrity.log_faults import faults_of_log
from rivermark.model.source import PlannedSplit, SourceReader
from rivermark.sources import DeltaSource

pytestmark = [pytest.mark.spark, pytest.mark.long]

NOW: Final = datetime(2026, 3, 2, tzinfo=UTC)
Sql = Callable[..., None]


@pytest.fixture
def sql(spark: SparkSession, tmp_path: Path) -> Sql:
    """Runs statements, in which `t` is the table."""

    def run(*statements: str) -> None:
        for statement in statements:
            spark.sql(statement.replace("{t}", f"delta.`{tmp_path / 'elsewhere'}`"))

    return run


def made(sql: Sql, properties: str, *statements: str, columns: str = "id INT, note STRING") -> None:
    """A table with these properties and five rows of two commits, then the statements."""
    sql(
        f"CREATE TABLE {{t}} ({columns}) USING delta {properties}",
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "INSERT INTO {t} VALUES (4, 'd'), (5, 'e')",
        *statements,
    )


def properties(**named: str) -> str:
    """A clause of table properties."""
    pairs = ", ".join(f"'delta.{name}' = '{value}'" for name, value in named.items())
    return f"TBLPROPERTIES ({pairs})"


FEATURES: Final[dict[str, Callable[[Sql], None]]] = {
    "deletion vectors": lambda sql: made(
        sql, properties(enableDeletionVectors="true"), "DELETE FROM {t} WHERE id = 2"
    ),
    "column mapping": lambda sql: made(
        sql,
        properties(**{"columnMapping.mode": "name"}),
        "ALTER TABLE {t} RENAME COLUMN note TO remark",
        "ALTER TABLE {t} ADD COLUMN note STRING",
        "INSERT INTO {t} VALUES (6, 'f', 'g')",
    ),
    "v2 checkpoints": lambda sql: made(
        sql,
        properties(checkpointPolicy="v2", checkpointInterval="2"),
        "INSERT INTO {t} VALUES (6, 'f')",
    ),
}


def planned(reader: SourceReader, batch: int) -> list[PlannedSplit]:
    """What the reader discovers, as a plan has it."""
    splits = [PlannedSplit(**vars(s), batch=batch, landed_at=NOW) for s in reader.discover().ready]
    if splits:
        reader.planned(splits)
    return splits


def payloads(
    spark: SparkSession, reader: SourceReader, splits: list[PlannedSplit], most: int
) -> list[dict[str, object]]:
    """The rows as they reach the parser."""
    parts = [each for piece in reader.pieces(spark, splits, most) for each in reader.read(piece)]
    texts = [text for each in parts for text in each.rows["payload"].to_pylist()]
    return sorted((json.loads(text) for text in texts), key=str)


def as_spark_reads(spark: SparkSession, table: Path) -> list[dict[str, object]]:
    """The rows of the newest version."""
    rows = spark.read.format("delta").load(str(table)).toJSON().collect()
    return sorted((json.loads(str(row)) for row in rows), key=str)


@pytest.mark.parametrize("feature", FEATURES)
def test_a_table_of_another_writer_is_read_as_spark_reads_it(
    spark: SparkSession, tmp_path: Path, sql: Sql, feature: str
) -> None:
    table = tmp_path / "elsewhere"
    FEATURES[feature](sql)
    reader = DeltaSource(table=str(table)).open("")
    splits = planned(reader, 0)
    expected = as_spark_reads(spark, table)
    for most in (1, 1 << 20):
        assert payloads(spark, reader, splits, most) == expected, f"{feature} {most}"

    sql("INSERT INTO {t} SELECT * FROM {t} WHERE id = 1")
    news = planned(reader, 1)
    one = [row for row in expected if row["id"] == 1]
    for most in (1, 1 << 20):
        assert payloads(spark, reader, news, most) == one, f"{feature} {most}"

    assert list(faults_of_log(str(table))) == []
    problems = [data_file_problem(file) for file in data_files(str(table))]
    assert problems == [None] * len(problems)


def test_rows_that_a_deletion_vector_takes_out_end_a_reading_by_appends(
    spark: SparkSession, tmp_path: Path, sql: Sql
) -> None:
    made(sql, properties(enableDeletionVectors="true", enableChangeDataFeed="true"))
    appends, feed = (
        DeltaSource(table=str(tmp_path / "elsewhere"), changes=changes).open("")
        for changes in ("appends", "feed")
    )
    for reader in (appends, feed):
        planned(reader, 0)
    sql("DELETE FROM {t} WHERE id = 2")

    with pytest.raises(RivermarkError, match=r"deletes rows \(DELETE\)"):
        appends.discover()
    news = planned(feed, 1)
    for most in (1, 1 << 20):
        rows = payloads(spark, feed, news, most)
        assert [(row["_change_type"], row["id"]) for row in rows] == [("delete", 2)]


def test_a_shallow_clone_is_read_from_the_files_of_its_source(
    spark: SparkSession, tmp_path: Path, sql: Sql
) -> None:
    made(sql, "")
    clone = tmp_path / "clone"
    sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE {{t}}")
    reader = DeltaSource(table=str(clone)).open("")
    splits = planned(reader, 0)

    for most in (1, 1 << 20):
        assert payloads(spark, reader, splits, most) == as_spark_reads(spark, clone)


def test_files_of_compacted_and_unfinished_commits_are_no_versions(
    spark: SparkSession, tmp_path: Path, sql: Sql
) -> None:
    made(sql, "")
    log = tmp_path / "elsewhere" / "_delta_log"
    entries = [(log / f"{version:020d}.json").read_text() for version in (1, 2)]
    (log / f"{1:020d}.{2:020d}.compacted.json").write_text("".join(entries))
    (log / "_staged_commits").mkdir(exist_ok=True)
    (log / "_staged_commits" / f"{3:020d}.5a.json").write_text(entries[0])
    reader = DeltaSource(table=str(tmp_path / "elsewhere"), from_version=0).open("")
    splits = planned(reader, 0)

    assert [split.name for split in splits] == [f"version-{n:020d}" for n in (1, 2)]
    for most in (1, 1 << 20):
        rows = payloads(spark, reader, splits, most)
        assert [row["id"] for row in rows] == [1, 2, 3, 4, 5]
    assert list(faults_of_log(str(tmp_path / "elsewhere"))) == []
