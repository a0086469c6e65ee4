"""Filters that Spark moves below a watermark: what they drop then no longer moves it.

A filter that does not touch the event time is moved towards the source. Windows, joins and repeats
above then wait for the next row that passes, and forever where none comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

from rivermark.runtime.spark.join_state_check import each, joins_streams, nodes

WATERMARK: Final = "EventTimeWatermark"
STATEFUL: Final = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark")
"""Operators that wait for the watermark, beside joins of two streams."""
OWN: Final = ("IsNotNull",)
"""Conditions that Spark adds of its own accord, for the keys of a join."""


def pushed_filters(built: DataFrame) -> list[str]:
    """The conditions of a stream's build that hold its watermark back, as Spark writes them."""
    # Asked of the optimizer itself: a query's own plan refuses streams that were not started.
    optimizer: Any = built.sparkSession._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(built._jdf.queryExecution().analyzed())
    if not any(_waits(node) for node in nodes(plan)):
        return []
    conditions = [
        condition.sql()
        for watermark in nodes(plan)
        if watermark.nodeName() == WATERMARK
        for node in nodes(watermark.child())
        if node.nodeName() == "Filter"
        for condition in _conjuncts(node.condition())
        if condition.nodeName() not in OWN
    ]
    return [*dict.fromkeys(conditions)]


def _waits(node: Any) -> bool:
    return node.nodeName() in STATEFUL or joins_streams(node)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        for part in each(condition.children()):
            yield from _conjuncts(part)
    else:
        yield condition
