"""Whether the state of a join is ever released, by Spark's own plan of the query.

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
    for node in _nodes(built._jdf.queryExecution().analyzed()):
        if node.nodeName() != "Join" or not (_streams(node.left()) and _streams(node.right())):
            continue
        condition = node.condition()
        if condition.isDefined() and _has_watermarked_key(condition.get()):
            continue
        for side, plan in (("left", node.left()), ("right", node.right())):
            times = [n.eventTime().name() for n in _nodes(plan) if "Watermark" in n.nodeName()]
            if times and not any(map(_watermarked, _each(plan.output()))):
                column = times[0]
                raise DeclarationError(
                    f"stream '{stream}': the {side} side of its {node.joinType().sql()} join has "
                    f"lost its watermark: the event time '{column}' of its input is not passed on "
                    "as it was read, but computed, cast or left out, so its state never "
                    "releases rows. Add a condition on the event times of both sides, here on "
                    f"'{column}' itself (renamed, if need be), and compute other times after it"
                )


def _streams(plan: Any) -> bool:
    return bool(plan.isStreaming())


def _nodes(plan: Any) -> Iterator[Any]:
    """The nodes of a plan of the JVM, from the top."""
    yield plan
    for child in _each(plan.children()):
        yield from _nodes(child)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(place) for place in range(sequence.size()))


def _watermarked(attribute: Any) -> bool:
    return bool(attribute.metadata().contains(WATERMARK))


def _has_watermarked_key(condition: Any) -> bool:
    """Whether the join is also by the equality of a column with a watermark, such as a window."""
    kind = condition.nodeName()
    if kind == "And":
        return any(map(_has_watermarked_key, _each(condition.children())))
    if kind not in ("EqualTo", "EqualNullSafe"):
        return False
    return any(
        side.nodeName() == "AttributeReference" and _watermarked(side)
        for side in _each(condition.children())
    )
