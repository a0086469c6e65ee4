"""Small batches parsed by Spark's expressions in the driver, without a job and without new code.

Spark's optimizer computes a projection over rows that it has in memory (ConvertToLocalRelation), by
interpreting the expressions. The parser stays the only one there is. As a job the same projection
becomes one generated method too long for the JVM to compile: it took 34 microseconds of CPU a row
against 14 here, and seconds of compiling around it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from rivermark.admission.parse import PLACE, Head, Parser


def parse_here(
    spark: SparkSession, parser: Parser, lines: pa.Table, heads: Iterable[Head]
) -> pa.Table:
    """The lines with what the parser makes of them, in their order."""
    place = pa.array(range(lines.num_rows), pa.int64())
    # All columns: a contract may derive from any of them, as trips do from their file's name.
    sent = lines.append_column(PLACE, place)
    rows = spark.createDataFrame(sent)
    found = parser.parse_alone(rows, heads, sent.column_names).toArrow()
    if not pc.all(pc.equal(found[PLACE], place)).as_py():
        found = found.sort_by(PLACE)
    for name in found.column_names:
        if name != PLACE:
            lines = lines.append_column(name, found[name])
    return lines
