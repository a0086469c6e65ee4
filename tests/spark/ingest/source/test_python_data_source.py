"""Spark Python Data Sources as sources: the example of docs/sources, and one with partitions."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from rivermark import Ingest
from rivermark.settings import Settings
from rivermark.sources import PythonDataSource, Source
from tests.spark.helpers.sensors import rows, run
from tests.spark.helpers.source_contract import SourceContract, event

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[4] / "docs" / "sources" / "python_data_source.py"


def example(path: Path) -> Ingest:
    """The ingest that the page declares."""
    spec = importlib.util.spec_from_file_location("python_data_source_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ingest: Ingest = module.journal(path)
    return ingest


def write(path: Path, numbers: range) -> None:
    """Append entries to a journal."""
    with path.open("a") as file:
        for number in numbers:
            file.write(f"{number},{event(number)['at'].isoformat()}\n")


class TestSimpleReader(SourceContract):
    """The journal of the page."""

    def source(self, root: Path) -> Source:
        return example(root / "journal").source

    def produce(self, root: Path, numbers: range) -> None:
        write(root / "journal", numbers)


def test_the_page_s_ingest_runs(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    ingest = example(tmp_path / "journal")
    write(tmp_path / "journal", range(4))

    assert run(spark, settings, ingest)[ingest.name].admitted == 4
    write(tmp_path / "journal", range(4, 6))
    assert run(spark, settings, ingest)[ingest.name].admitted == 2
    assert [r["id"] for r in rows(spark, settings, ingest.admitted, "id")] == [*range(6)]


class Numbers(DataSource):
    """Events of a file of one number, from 0 to it; two partitions."""

    def schema(self) -> StructType | str:
        return "id long, at timestamp"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return NumbersReader(Path(self.options["path"]))


class NumbersReader(DataSourceStreamReader):
    def __init__(self, path: Path) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, int]:
        return {"number": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"number": int(self._path.read_text()) if self._path.exists() else 0}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        middle = (start["number"] + end["number"]) // 2
        return [
            InputPartition((start["number"], middle)),
            InputPartition((middle, end["number"])),
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        first, end = partition.value
        if first % 2:
            yield pa.RecordBatch.from_pylist([event(n) for n in range(first, end)])
        else:
            yield from ((n, event(n)["at"]) for n in range(first, end))

    def commit(self, end: dict[str, int]) -> None:
        (self._path.parent / "committed").write_text(str(end["number"]))


class TestPartitionedReader(SourceContract):
    """Numbers; records are tuples or Arrow batches."""

    def source(self, root: Path) -> Source:
        return PythonDataSource(data_source=Numbers, options={"path": str(root / "number")})

    def produce(self, root: Path, numbers: range) -> None:
        (root / "number").write_text(str(numbers.stop))

    def test_offsets_are_committed_once_their_records_are_in_the_tables(
        self, deployment: Any
    ) -> None:
        self.produce(deployment.root, range(5))
        deployment.run()

        assert (deployment.root / "committed").read_text() == "5"
