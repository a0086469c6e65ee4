"""Joins of two streams, by Spark's own plan: the release of their state, and rows without a key.

Spark's join of streams looks keys up by their bytes, in which null equals null. It relies on the
filter for nulls that the optimizer puts below a join, and there is none below a full outer join,
nor for a key whose null the optimizer cannot foresee (`nullif`, CASE). Live rows without a key then
find each other, while a recompute of the same rows, a join of tables, keeps them apart. So the
condition of such a join also says that its keys are not null, which equality implies anyway; the
state of a checkpoint is the same with and without it.

Written for the plans of Spark 4.2, which name the bound of each side; in the plan of another
version the check may find no join, and then refuses none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from rivermark.model.errors import DeclarationError

CLEANUP: Final = re.compile(r"state cleanup \[ left = (.*), right = (.*?) \]")
WATERMARK: Final = "spark.watermarkDelayMs"
"""Key of a column's metadata by which Spark knows its watermark."""
CARRIED: Final = "_watermark_of_"
"""Prefix of the column that moves the watermark of an event time in its place."""


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


def check_watermarks(built: DataFrame, stream: str) -> None:
    """Refuse a join of two streams one side of which no longer passes its event time on.

    A time that is computed, or cast, is another column to Spark, without a watermark: the
    condition on both times that stands there bounds nothing. Call it before the query is started,
    since Spark's own refusal does not name the column. Raises DeclarationError.
    """
    for node in nodes(built._jdf.queryExecution().analyzed()):
        if not joins_streams(node):
            continue
        condition = node.condition()
        if condition.isDefined() and _has_watermarked_key(condition.get()):
            continue
        for side, plan in (("left", node.left()), ("right", node.right())):
            moving = (n.eventTime().name() for n in nodes(plan) if "Watermark" in n.nodeName())
            times = [name.removeprefix(CARRIED) for name in moving]
            if times and not any(map(_watermarked, each(plan.output()))):
                column = times[0]
                raise DeclarationError(
                    f"stream '{stream}': the {side} side of its {node.joinType().sql()} join has "
                    f"lost its watermark: the event time '{column}' of its input is not passed on "
                    "as it was read, but computed, cast or left out, so its state never "
                    "releases rows. Add a condition on the event times of both sides, here on "
                    f"'{column}' itself (renamed, if need be), and compute other times after it"
                )


def has_join(built: DataFrame) -> bool:
    """Returns True if the plan of the rows has a join at all, also one with a table."""
    spark: Any = built.sparkSession
    pattern = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.JOIN()
    return bool(built._jdf.queryExecution().analyzed().containsPattern(pattern))


def joins_streams(node: Any) -> bool:
    """Returns True if a node of a plan is a join both sides of which are streams."""
    if node.nodeName() != "Join":
        return False
    return bool(node.left().isStreaming() and node.right().isStreaming())


def nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan of the JVM, from the top."""
    yield plan
    for child in each(plan.children()):
        yield from nodes(child)


def each(sequence: Any) -> Iterator[Any]:
    """The elements of a sequence of the JVM."""
    return (sequence.apply(place) for place in range(sequence.size()))


def _watermarked(attribute: Any) -> bool:
    return bool(attribute.metadata().contains(WATERMARK))


def _has_watermarked_key(condition: Any) -> bool:
    """True if the join is also by the equality of a column with a watermark, such as a window."""
    kind = condition.nodeName()
    if kind == "And":
        return any(map(_has_watermarked_key, each(condition.children())))
    if kind not in ("EqualTo", "EqualNullSafe"):
        return False
    return any(
        side.nodeName() == "AttributeReference" and _watermarked(side)
        for side in each(condition.children())
    )


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
