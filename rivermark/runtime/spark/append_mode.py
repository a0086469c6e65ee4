"""Finality of a streaming plan's results, by Spark's own check."""

from __future__ import annotations

from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from rivermark.model.plan_errors import plan_fault
from rivermark.model.stream import Stream, table_of

NEVER_FINAL = "STREAMING_OUTPUT_MODE"


def append_fault(spark: SparkSession, stream: Stream, built: DataFrame) -> str | None:
    """The reason why a query of the plan could not be started; None where it could."""
    jvm: Any = spark._jvm
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    append = jvm.org.apache.spark.sql.streaming.OutputMode.Append()
    try:
        checker.checkForStreaming(built._jdf.queryExecution().analyzed(), append)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith(NEVER_FINAL):
            return plan_fault(error)
        times = [f"'{table_of(r).event_time}' of {table_of(r).name}" for r in stream.reads]
        return never_final(" or ".join(times))
    return None


def never_final(times: str) -> str:
    """The error for an aggregation that no watermark ends."""
    return (
        "it groups rows without a window of the event time, so no result would ever be final: "
        f"group by a window over {times}, as read and not computed (operators.per_window)"
    )
