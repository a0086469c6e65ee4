"""Batches parsed in the driver, without a job: the fast lane, and the parser for what it leaves.

Spark's optimizer computes a projection over rows that it has in memory (ConvertToLocalRelation), by
interpreting the expressions. The parser stays the only judge of what is not plainly well-formed.
As a job the same projection becomes one generated method too long for the JVM to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.lane_checks import LaneChecks
from rivermark.ingest.parse.parser import CELLS, Parser
from rivermark.ingest.parse.projection import PLACE
from rivermark.ingest.parse.rules import WHOLE, ContractRules, column_rules_of
from rivermark.ingest.spark_internals import PlannedProjection
from rivermark.model.source import Columns

RECORD = "_record"
ROWS: Final = 20_000
"""Lines that Spark is asked about at once: its rows take many times the memory of Arrow's, and a
file of eight megabytes may have four million."""


class DriverParser:
    """Parses lines that the driver holds; what Spark plans for their columns is used again."""

    def __init__(self, spark: SparkSession, parser: Parser) -> None:
        self._spark = spark
        self._parser = parser
        self._planned: dict[pa.Schema, PlannedProjection] = {}
        self._checks = LaneChecks(spark, parser.contract)
        self._rules = ContractRules(parser.contract)

    def parse(self, lines: pa.Table, known: Sequence[Columns] = ()) -> pa.Table:
        """The lines with what the parser makes of them, in their order.

        `known` are the columns that some of them were.
        """
        lines = lines.combine_chunks()
        payloads, formats, columns = (
            _whole(lines[name]) for name in ("payload", "_format", "_columns")
        )
        typed = self._parser.lane(self._spark).type(payloads, formats, columns, known)
        record = self._records(lines)
        parsed, plain = self._checks.checked(lines, typed)
        plain |= ~record
        parsed = parsed.append_column(RECORD, pa.array(record))
        parsed = parsed.append_column(WHOLE, pa.array(plain))
        if not plain.all():
            parsed = self._merged(parsed, lines, plain)
        for name in parsed.column_names:
            lines = lines.append_column(name, parsed[name])
        ruled = column_rules_of(self._spark, self._rules.added(lines), self._parser.contract)
        return ruled.drop_columns([WHOLE])

    def _records(self, lines: pa.Table) -> Mask:
        """Which lines are events, as far as that is plain: not empty, and not their file's head."""
        head = pc.fill_null(pc.equal(lines["payload"], lines["_head"]), False)
        none = pc.or_(head, pc.equal(pc.binary_length(lines["payload"]), 0))
        record: Mask = ~none.to_numpy().astype(np.bool_)
        return record

    def _merged(self, parsed: pa.Table, lines: pa.Table, plain: Mask) -> pa.Table:
        """The plain rows, and what the parser makes of the others, in the order of the lines."""
        doubtful = self.parse_doubtful(lines.filter(pa.array(~plain)))
        if not plain.any():
            return doubtful.select(parsed.column_names)
        both = pa.concat_tables([parsed, doubtful.select(parsed.column_names).cast(parsed.schema)])
        rows = np.arange(len(plain))
        rows[~plain] = len(plain) + np.arange(doubtful.num_rows)
        return both.take(pa.array(rows))

    def parse_doubtful(self, lines: pa.Table) -> pa.Table:
        """What the parser makes of lines."""
        firsts = range(0, max(lines.num_rows, 1), ROWS)
        return pa.concat_tables([self._parse_some(lines.slice(first, ROWS)) for first in firsts])

    def _parse_some(self, lines: pa.Table) -> pa.Table:
        place = pa.array(range(lines.num_rows), pa.int64())
        lines = lines.combine_chunks()
        cut = self._parser.cutter.cut(
            *(_whole(lines[name]) for name in ("payload", "_format", "_columns"))
        )
        # All columns: a contract may derive from any of them, as trips do from their file's name.
        parsed = self._parsed(lines.append_column(PLACE, place).append_column(CELLS, cut))
        if not pc.all(pc.equal(parsed[PLACE], place)).as_py():
            parsed = parsed.sort_by(PLACE)
        return parsed

    def _parsed(self, sent: pa.Table) -> pa.Table:
        rows = self._spark.createDataFrame(sent)
        kept = [name for name in sent.column_names if name != CELLS]

        def build(rows: DataFrame) -> DataFrame:
            return self._parser.parse_cut(rows, kept)

        if sent.schema not in self._planned:
            self._planned[sent.schema] = PlannedProjection(self._spark, build, rows)
        planned = self._planned[sent.schema]
        parsed = planned.of(rows) if planned.usable else None
        return build(rows).toArrow() if parsed is None else parsed


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; it may be empty."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
