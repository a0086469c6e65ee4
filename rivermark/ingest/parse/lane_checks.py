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
from pyspark.sql import SparkSession

from rivermark.ingest.parse.lane.lane import Typed
from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.own_reader import OwnReader
from rivermark.ingest.parse.parser import DETAILS, IMPOSSIBLE, PROBLEMS
from rivermark.ingest.parse.rules.conditions import Conditions
from rivermark.ingest.parse.rules.moments import ZoneOf
from rivermark.lake.schema import arrow_schema
from rivermark.model.contract import FLAGS, Contract, Field, Rule

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)


class LaneChecks:
    """Completes what the lane typed, against one contract."""

    def __init__(self, spark: SparkSession, contract: Contract, zone_of: ZoneOf) -> None:
        self._contract = contract
        self._types = arrow_schema(contract.columns())
        self._readers: dict[str, OwnReader] = {}
        self._rules: Conditions | None = None
        self._zone_of = zone_of
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

    def _broken(self, lines: pa.Table, rows: pa.Table, good: Mask) -> dict[str, Mask]:
        if not self._contract.rules:
            return {}
        if self._rules is None:
            conditions = [(rule.name, rule.broken()) for rule in self._contract.rules]
            self._rules = Conditions(self._spark, conditions, self._zone_of)
        for name in lines.column_names:
            rows = rows.append_column(name, lines[name])
        return self._rules.of(rows, good)


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
