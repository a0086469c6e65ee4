"""Whether the state of a join is ever released, by Spark's own plan of the running query.

Written for the plans of Spark 4.2, which name the bound of each side; in the plan of another
version the check may find no join, and then refuses none.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession

from rivermark.model.errors import DeclarationError

CLEANUP: Final = re.compile(r"state cleanup \[ left = (.*), right = (.*?) \]")


def check_joins(spark: SparkSession, stream: str) -> None:
    """Refuse a running query whose join has no bound in time: its state would grow without end.

    Spark itself refuses such outer joins only. Call it within a batch: there is no plan before.
    Raises DeclarationError.
    """
    plans = [q._jsq.explainInternal(False) for q in spark.streams.active if q.name == stream]
    for plan in plans:
        for left, right in CLEANUP.findall(plan):
            if "null" in (left, right):
                raise DeclarationError(
                    f"stream '{stream}': its join has no bound in time, so its state never "
                    "releases rows; add a condition on the event times of both sides"
                )
