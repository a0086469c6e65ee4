"""Rows without a key find no partner in a join of two streams, as in SQL and in a join of tables.

Spark's join of streams looks keys up by their bytes, in which null equals null. It relies on the
filter for nulls that the optimizer puts below a join, and there is none below a full outer join,
nor for a key whose null the optimizer cannot foresee (`nullif`, CASE). Live rows without a key then
find each other, while a recompute of the same rows, a join of tables, keeps them apart.

So the condition of such a join also says that its keys are not null, which equality implies anyway.
The state of a checkpoint is the same with and without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame

from rivermark.runtime.spark.join_state_check import each, joins_streams


def keep_null_keys_apart(built: DataFrame) -> DataFrame:
    """The same rows by a plan whose joins of two streams pair no rows without a key.

    Keys that are compared null-safe (`<=>`, `eqNullSafe`) find each other as they are meant to.
    """
    plan = _with_conditions(built, built._jdf.queryExecution().analyzed())
    if plan is None:
        return built
    spark: Any = built.sparkSession
    dataset = spark._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def _with_conditions(built: DataFrame, plan: Any) -> Any | None:
    """The plan with complete conditions, or None where all were complete."""
    jvm: Any = built.sparkSession._jvm
    children = [*each(plan.children())]
    completed = [_with_conditions(built, child) for child in children]
    changed = any(child is not None for child in completed)
    if changed:
        pairs = zip(completed, children, strict=True)
        plan = plan.withNewChildren(jvm.PythonUtils.toSeq([new or old for new, old in pairs]))
    if not joins_streams(plan) or plan.condition().isEmpty():
        return plan if changed else None
    condition = plan.condition().get()
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    keys = [key for key in _compared(condition) if key.nullable()]
    if not keys:
        return plan if changed else None
    for key in keys:
        condition = expressions.And(condition, expressions.IsNotNull(key))
    return plan.copy(
        plan.left(), plan.right(), plan.joinType(), jvm.scala.Option.apply(condition), plan.hint()
    )


def _compared(condition: Any) -> Iterator[Any]:
    """Both sides of each equality that must hold."""
    if condition.nodeName() == "And":
        for part in each(condition.children()):
            yield from _compared(part)
    elif condition.nodeName() == "EqualTo":
        yield from each(condition.children())
