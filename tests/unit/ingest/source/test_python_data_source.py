"""Records of a Python data source as payloads, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from rivermark.ingest.source.ranges import RangeReader
from rivermark.sources import PythonDataSource

Offset = dict[str, int]


class Wild(DataSource):
    """Values that Python has not, in Arrow batches, and one that JSON has not, in a tuple."""

    def schema(self) -> StructType | str:
        return StructType().add("id", "long").add("at", "timestamp").add("span", "string")

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        return WildReader()


class WildReader(SimpleDataSourceStreamReader):
    def initialOffset(self) -> Offset:
        return {"n": 0}

    def read(self, start: Offset) -> tuple[Iterator[Any], Offset]:
        return iter(()), {"n": 1}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[Any]:
        moments = pa.array([2**62, 1_001], pa.timestamp("us", "UTC"))
        yield pa.record_batch({"id": pa.array([1, 2]), "at": moments})
        yield (3, None, timedelta(hours=25))


def test_a_value_that_python_or_json_has_not_costs_its_record_alone() -> None:
    reader = cast(RangeReader, PythonDataSource(data_source=Wild).open(""))
    assert [json.loads(text) for text in reader.payloads({"n": 0}, {"n": 1})] == [
        {"id": 1, "at": "+148108-07-06T14:00:27.387904Z"},
        {"id": 2, "at": "1970-01-01T00:00:00.001001Z"},
        {"id": 3, "at": None, "span": "1 day, 1:00:00"},
    ]
