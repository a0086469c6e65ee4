"""The size of a batch's input files, by Spark's own plan.

Written for Spark 4.2. With another version it is not known: `input_bytes` returns None.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from rivermark.runtime.spark.version import is_known_version


def input_bytes(frame: DataFrame) -> int | None:
    """Bytes of the files that the frame reads, before any filter or choice of columns.

    Spark's own estimate for a join is the product of its inputs', so only the leaves are counted.
    """
    if not is_known_version():
        return None
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    sizes = (leaves.apply(n).stats().sizeInBytes() for n in range(leaves.size()))
    return sum(int(str(size)) for size in sizes)
