"""What is asked of rows beyond their types: own readers, and times within bounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from rivermark.ingest.parse.lane.lane import Typed
from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.own_reader import OwnReader
from rivermark.ingest.parse.parser import DETAILS, IMPOSSIBLE
from rivermark.ingest.parse.rules import PROBLEMS
from rivermark.lake.schema import arrow_schema
from rivermark.model.contract import FLAGS, Contract, Field

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)


class LaneChecks:
    """Completes what the lane typed, against one contract."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._contract = contract
        self._types = arrow_schema(contract.columns())
        self._readers: dict[str, OwnReader] = {}
        self._spark = spark

    def checked(self, lines: pa.Table, typed: Typed) -> tuple[pa.Table, Mask]:
        """The fields with `flags`, `_problems` and `_details`, and the rows that are plain."""
        good = typed.good
        columns = {}
        for field in self._contract.fields:
            column = typed.columns[field.name]
            if field.name in typed.texts:
                texts = column
                column = self._read(field, texts)
                good = good & _mask(pc.or_(column.is_valid(), texts.is_null()))
                if field.required:
                    good &= _mask(texts.is_valid())
            columns[field.name] = column.cast(self._types.field(field.name).type)
        good = good & self._in_time(columns[self._contract.event_time], lines["_landed_at"])
        rows = pa.table(columns)
        nothing = pa.ListArray.from_arrays(
            pa.array(np.zeros(len(good) + 1, np.int32)), pa.array([], pa.string())
        )
        for name in (FLAGS, PROBLEMS):
            rows = rows.append_column(name, nothing)
        return rows.append_column(DETAILS, pa.repeat("", len(good))), good

    def _read(self, field: Field, texts: pa.Array) -> pa.Array:
        if field.name not in self._readers:
            kind = self._types.field(field.name).type
            self._readers[field.name] = OwnReader(self._spark, field, kind)
        return self._readers[field.name].read(texts)

    def _in_time(self, times: pa.Array, landed: pa.ChunkedArray) -> Mask:
        """Which event times are not before all and not ahead of their file."""
        micros = times.cast(pa.int64()).fill_null(0).to_numpy()
        latest = landed.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        ahead = self._contract.max_ahead // MICRO
        first = (max(IMPOSSIBLE, self._contract.earliest) - EPOCH) // MICRO
        inside: Mask = (micros >= first) & (micros <= latest + ahead)
        return inside


def _mask(values: Any) -> Mask:
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask
