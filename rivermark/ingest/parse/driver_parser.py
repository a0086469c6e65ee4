"""Small batches parsed in the driver, without a job: the cutter, then Spark's expressions.

Spark's optimizer computes a projection over rows that it has in memory (ConvertToLocalRelation), by
interpreting the expressions. The parser stays the only one there is. As a job the same projection
becomes one generated method too long for the JVM to compile: it took 34 microseconds of CPU a row
against 14 here, and seconds of compiling around it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.parse.parser import CELLS, PLACE, Parser
from rivermark.ingest.spark_internals import PlannedProjection


class DriverParser:
    """Parses lines that the driver holds; what Spark plans for their columns is used again."""

    def __init__(self, spark: SparkSession, parser: Parser) -> None:
        self._spark = spark
        self._parser = parser
        self._planned: dict[pa.Schema, PlannedProjection] = {}

    def parse(self, lines: pa.Table) -> pa.Table:
        """The lines with what the parser makes of them, in their order."""
        place = pa.array(range(lines.num_rows), pa.int64())
        texts = self._parser.cutter.cut(lines["payload"], lines["_format"], lines["_columns"])
        # All columns: a contract may derive from any of them, as trips do from their file's name.
        parsed = self._parsed(lines.append_column(PLACE, place).append_column(CELLS, texts))
        if not pc.all(pc.equal(parsed[PLACE], place)).as_py():
            parsed = parsed.sort_by(PLACE)
        for name in parsed.column_names:
            if name != PLACE:
                lines = lines.append_column(name, parsed[name])
        return lines

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
