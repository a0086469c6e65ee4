"""What is asked of rows beyond their types: own readers, times within bounds, and rules.

Spark is asked about whole columns, and only about those that an expression refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.parse.lane.lane import Typed
from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.parser import DETAILS, IMPOSSIBLE, PROBLEMS
from rivermark.ingest.parse.projection import Projection
from rivermark.lake.schema import arrow_schema
from rivermark.model.contract import FLAGS, Contract, Field, Rule
from rivermark.model.field_readers import reader_for

TEXT: Final = "text"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)


class LaneChecks:
    """Completes what the lane typed, against one contract."""

    def __init__(self, spark: SparkSession, contract: Contract) -> None:
        self._contract = contract
        self._types = arrow_schema(contract.columns())
        self._readers: dict[str, Projection] = {}
        self._rules: Projection | None = None
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
        broken = self._broken(lines, rows, good)
        for name, action in ((FLAGS, "flag"), (PROBLEMS, "quarantine")):
            own = [r for r in self._contract.rules if r.action == action]
            rows = rows.append_column(name, _names(own, broken, len(good)))
        return rows.append_column(DETAILS, pa.repeat("", len(good))), good

    def _read(self, field: Field, texts: pa.Array) -> pa.Array:
        """What the field's own reader makes of texts, each of which is read once.

        Nothing where it looks at other columns too: such rows are left to the parser.
        """
        if field.name not in self._readers:
            read = field.read or reader_for(field.type)
            value = read(F.col(TEXT)).try_cast(field.type)
            self._readers[field.name] = Projection(self._spark, [(field.name, value)])
        coded = texts.dictionary_encode()
        try:
            values = self._readers[field.name].of(pa.table({TEXT: coded.dictionary}))
        except AnalysisException:
            return pa.nulls(len(texts), self._types.field(field.name).type)
        return values[field.name].combine_chunks().take(coded.indices)

    def _in_time(self, times: pa.Array, landed: pa.ChunkedArray) -> Mask:
        """Which event times are not before all and not ahead of their file."""
        micros = times.cast(pa.int64()).fill_null(0).to_numpy()
        latest = landed.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
        ahead = self._contract.max_ahead // MICRO
        first = (max(IMPOSSIBLE, self._contract.earliest) - EPOCH) // MICRO
        inside: Mask = (micros >= first) & (micros <= latest + ahead)
        return inside

    def _broken(self, lines: pa.Table, rows: pa.Table, good: Mask) -> dict[str, Mask]:
        if not self._contract.rules:
            return {}
        if self._rules is None:
            conditions = [(rule.name, rule.broken()) for rule in self._contract.rules]
            self._rules = Projection(self._spark, conditions)
        for name in lines.column_names:
            rows = rows.append_column(name, lines[name])
        broken = self._rules.of(rows)
        return {name: _mask(broken[name]) & good for name in broken.column_names}


def _names(rules: Sequence[Rule], broken: dict[str, Mask], count: int) -> pa.Array:
    """For each row the names of the rules that it breaks, in their order."""
    if not rules:
        return pa.ListArray.from_arrays(
            pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.string())
        )
    which = np.column_stack([broken[rule.name] for rule in rules])
    _, rule = np.nonzero(which)
    ends = np.concatenate([[0], np.cumsum(which.sum(axis=1))]).astype(np.int32)
    names = pa.array([r.name for r in rules], pa.string()).take(pa.array(rule))
    return pa.ListArray.from_arrays(pa.array(ends), names)


def _mask(values: Any) -> Mask:
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask
