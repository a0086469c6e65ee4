"""Whether the state of a join is ever let go of, as the engine's own plan tells it."""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import SparkSession

from rivermark.model.errors import DeclarationError

CLEANUP: Final = re.compile(r"state cleanup \[ left = (.*), right = (.*?) \]")


def check_joins(spark: SparkSession, stream: str) -> None:
    """Refuse a running query whose join has no bound in time: it would keep every row for ever.

    Spark itself refuses such outer joins only. Call it within a batch: there is no plan before.
    """
    plans = [q._jsq.explainInternal(False) for q in spark.streams.active if q.name == stream]
    for plan in plans:
        for left, right in CLEANUP.findall(plan):
            if "null" in (left, right):
                raise DeclarationError(
                    f"stream '{stream}': its join has no bound in time, so its state keeps rows "
                    "for ever; add a condition on the event times of both sides"
                )
