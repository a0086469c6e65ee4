"""Joining each event to the version of a thing that was valid at the event's time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rivermark.model.errors import DeclarationError
from rivermark.operators.repeats import ARRIVAL


def validity(versions: DataFrame, on: Sequence[str], *, since: str) -> DataFrame:
    """The versions of a lookup with `valid_from` and `valid_to` (null for the newest), in UTC.

    A version is valid from its `since`, its event time, until that of the next version of its key.
    If versions have the same time, the last to arrive counts, and the others are left out.
    """
    newer = Window.partitionBy(*on).orderBy(since, *ARRIVAL)
    following = F.lead(since).over(newer)
    kept = [c for c in versions.columns if not c.startswith("_") and c not in ("flags", since)]
    return (
        versions.withColumns({"valid_from": F.col(since), "valid_to": following})
        .where(F.col("valid_to").isNull() | (F.col("valid_to") > F.col("valid_from")))
        .select(*kept, "valid_from", "valid_to")
    )


def join_as_of(
    events: DataFrame,
    versions: DataFrame,
    on: Sequence[str],
    *,
    at: str,
    since: str,
    how: Literal["inner", "left"] = "left",
) -> DataFrame:
    """Each event with the version of its key that was valid `at` its time: never more than one.

        def orders_by_region(orders, stores):
            return join_as_of(orders, stores, ("store_id",), at="ordered_at", since="opened_at")

        ORDERS.stream(reads=(ORDERS,), static=(STORES.versions,), build=orders_by_region, ...)

    The same on a stream and on a table. The columns are those of the event, then those of
    `validity` without the keys. An event before the first version of its key has nulls there (or is
    left out by `inner`).

    Raises:
        DeclarationError: No columns to join on, or another column occurs on both sides.
    """
    if not on:
        raise DeclarationError("join_as_of: name the columns to join by, `on`")
    spans = validity(versions, on, since=since)
    both = [c for c in spans.columns if c not in on and c in events.columns]
    if both:
        raise DeclarationError(
            f"join_as_of: columns {', '.join(both)} are on both sides; rename or drop them in one"
        )
    keys = {key: f"_of_{key}" for key in on}
    spans = spans.withColumnsRenamed(keys)
    valid = (F.col(at) >= F.col("valid_from")) & (
        F.col("valid_to").isNull() | (F.col(at) < F.col("valid_to"))
    )
    for key, renamed in keys.items():
        valid &= F.col(key) == F.col(renamed)
    return events.join(spans, valid, how).drop(*keys.values())
