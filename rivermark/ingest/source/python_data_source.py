"""Any Spark Python Data Source that streams, as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any, ClassVar, cast

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceStreamReader,
    SimpleDataSourceStreamReader,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructType

from rivermark.ingest.source.payload import json_payload
from rivermark.ingest.source.ranges import RangeReader
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.model.declared import declared
from rivermark.model.source import PlannedSplit, Source, SourceReader


@declared("source")
@dataclass(frozen=True, kw_only=True)
class PythonDataSource(Source):
    """Records of a `pyspark.sql.datasource.DataSource` with a stream reader, simple or not.

    `options` are handed to the data source. Its offsets are the positions of the plan; they are
    committed to it once their records are in the tables. Its reader is called in the driver and
    must read the same records for the same offsets again. Schemas may be DDL text.
    """

    data_source: type[DataSource]
    options: Mapping[str, str] = field(default_factory=dict, hash=False)

    kind: ClassVar[str] = "python"
    unit: ClassVar[str] = "range"

    @property
    def name(self) -> str:
        """The name of the data source."""
        return self.data_source.name()

    @property
    def asset(self) -> tuple[str, ...]:
        """The name of the data source, below `python`."""
        return ("python", self.name)

    @property
    def description(self) -> str:
        """The data source."""
        return f"Records of the Python data source `{self.name}`."

    def open(self, landing_root: str) -> SourceReader:
        """Open the data source."""
        return _Reader(self)


class _Reader(RangeReader):
    """Reads ranges of a data source's own offsets."""

    def __init__(self, source: PythonDataSource) -> None:
        super().__init__()
        self._data_source = source.data_source(CaseInsensitiveDict(source.options))
        schema: Any = self._data_source.schema()
        self._schema: StructType = (
            cast(StructType, StructType.fromDDL(schema)) if isinstance(schema, str) else schema
        )
        self.columns = self._schema.fieldNames()

    @cached_property
    def _stream(self) -> DataSourceStreamReader | SimpleDataSourceStreamReader:
        try:
            return self._data_source.streamReader(self._schema)
        except PySparkNotImplementedError:
            return self._data_source.simpleStreamReader(self._schema)

    def first(self) -> dict[str, Any]:
        """The data source's initial offset."""
        return self._stream.initialOffset()

    def latest(self, start: dict[str, Any]) -> dict[str, Any]:
        """Its latest offset; a simple reader has to read for it."""
        stream = self._stream
        if isinstance(stream, SimpleDataSourceStreamReader):
            return stream.read(start)[1]
        if not signature(stream.latestOffset).parameters:
            # As Spark before 4.2 declared it.
            return stream.latestOffset()  # type: ignore[call-arg]
        return stream.latestOffset(start, ReadAllAvailable())

    def payloads(self, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        """The records of all partitions, one after the other."""
        return [payload for item in self._items(start, end) for payload in self._payloads(item)]

    def _items(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[Any]:
        stream = self._stream
        if isinstance(stream, SimpleDataSourceStreamReader):
            yield from stream.readBetweenOffsets(start, end)
        else:
            for partition in stream.partitions(start, end):
                yield from stream.read(partition)

    def _payloads(self, item: Any) -> list[str]:
        if isinstance(item, pa.RecordBatch):
            texts: list[str] = typed_records(item, None).payloads.to_pylist()
            return texts
        return [json_payload(dict(zip(self._schema.fieldNames(), item, strict=True)))]

    def committed(self, splits: Sequence[PlannedSplit]) -> None:
        """Commit the offsets to the data source."""
        for split in splits:
            self._stream.commit(self.position(split)["end"])

    def close(self) -> None:
        """Stop the data source's reader."""
        if isinstance(self._stream, DataSourceStreamReader):
            self._stream.stop()
