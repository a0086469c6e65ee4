"""Projections that are planned once and computed in the driver for batch after batch.

A DataFrame is analysed, optimised, planned and run as a job each time, whatever its size: for one
row through the parser 100 ms of CPU, against 14 here. The optimizer's rule that computes a
projection over rows in memory is called by itself, on what the optimizer made of the projections
the first time, and the rows come back as Arrow without a job. This reaches into Spark's `catalyst`
and `execution.arrow`; the version is pinned, and this is the one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

ROWS: Final = 20_000
"""Rows that come back at once: what a message to Python holds comfortably."""
BYTES: Final = 64 << 20


class PlannedProjection:
    """Projections over rows of one schema. `told` says whether Spark can compute them so."""

    def __init__(
        self, spark: SparkSession, build: Callable[[DataFrame], DataFrame], like: DataFrame
    ) -> None:
        """Let Spark plan what `build` makes of rows such as those of `like`."""
        self._zone = spark.conf.get("spark.sql.session.timeZone")
        session: Any = spark._jsparkSession
        jvm: Any = spark._jvm
        # Of an RDD, because the optimizer would compute them over rows in memory.
        self._schema = like._jdf.schema()
        none = session.createDataFrame(spark._sc._jsc.emptyRDD(), self._schema)
        found: Any = build(DataFrame(none, spark))._jdf.queryExecution()
        self._steps: list[Any] = []
        self._leaf = found.optimizedPlan()
        while self._leaf.nodeName() == "Project":
            self._steps.insert(0, self._leaf)
            self._leaf = self._leaf.children().head()
        catalyst = jvm.org.apache.spark.sql.catalyst
        # A plan that was made once would tell the time of its making for ever.
        timeless = not found.analyzed().containsPattern(catalyst.trees.TreePattern.CURRENT_LIKE())
        self.told = self._leaf.nodeName() == "LogicalRDD" and timeless
        self._rows_in_memory = catalyst.plans.logical.LocalRelation
        self._compute = getattr(catalyst.optimizer, "ConvertToLocalRelation$").__getattr__(
            "MODULE$"
        )
        arrow = jvm.org.apache.spark.sql.execution.arrow
        self._arrow = getattr(arrow, "ArrowConverters$").__getattr__("MODULE$")
        self._sequence = jvm.PythonUtils.toSeq
        self._nothing = jvm.scala.Option.empty()

    def of(self, rows: DataFrame) -> pa.Table | None:
        """What the projections make of rows in memory; None for others, and for another schema."""
        held: Any = rows._jdf.queryExecution().logical()
        if held.nodeName() != "LocalRelation" or not held.schema().equals(self._schema):
            return None
        found = self._rows_in_memory(self._leaf.output(), held.data(), False, self._nothing)
        for step in self._steps:
            found = self._compute.apply(step.withNewChildren(self._sequence([found])))
        if found.nodeName() != "LocalRelation":
            return None
        batches = self._arrow.toBatchWithSchemaIterator(
            found.data().iterator(), found.schema(), ROWS, BYTES, self._zone, True, False
        )
        told = []
        while batches.hasNext():
            told.append(pa.ipc.open_stream(batches.next()).read_all())
        return pa.concat_tables(told) if told else None
