"""A filter whose dropped rows still move the watermark."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def keep(condition: Column, *, event_time: str) -> Callable[[DataFrame], DataFrame]:
    """Keep the rows for which the condition holds; all rows tell how far event time has come.

    For `DataFrame.transform`, on a stream and on a table alike. A plain `where` that does not touch
    the event time is moved below the watermark by Spark's optimizer, and what it drops then no
    longer moves it: results wait for the next row that passes, and forever where none comes. Here
    the condition names the event time, so it stays above. Rows without event time are dropped.
    """
    return lambda events: events.where(F.when(condition, F.col(event_time)).isNotNull())
