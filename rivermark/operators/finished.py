"""Cutting rows from finished results, where Spark's optimizer cannot move the cut.

Spark moves a filter as deep into a computation as it holds to be right. Below the merging of
sessions that is wrong (Spark 4.2): a session that begins before midnight loses its later events
where only those of the next day are asked for. Nothing moves through a column that depends on where
it is computed, so a condition over such a column stays where it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

FIXED: Final = re.compile(r"CASE WHEN \(SPARK_PARTITION_ID\(\) >= 0\) THEN (\S+) END", re.I)
"""What `fixed` makes of a column in the text of a plan."""


def fixed(column: Column) -> Column:
    """The same value, which the optimizer neither moves nor lets a filter pass."""
    return F.when(F.spark_partition_id() >= 0, column)


def cut(finished: DataFrame, **conditions: Column) -> DataFrame:
    """The rows for which any of the conditions holds, each with a boolean column for every one.

    What the conditions leave out is computed all the same.
    """
    flags: Mapping[str, Column] = {
        name: fixed(F.coalesce(condition, F.lit(False))) for name, condition in conditions.items()
    }
    return finished.withColumns({**flags}).where(reduce(or_, map(F.col, flags)))
