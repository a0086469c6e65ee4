"""How complete the radio messages of the library's nodes are, by their sequence numbers.

Radio loses messages and delivers others twice, a moment later. All nodes count in step, a message a
minute: the messages of one number are a round, and a node that was not heard in a round lost it,
even where no hour is empty.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from assets.readings.expected import ORDERED_WINDOW
from assets.readings.ingest import LIBRARY, LIBRARY_ARCHIVE
from rivermark import expect
from rivermark.operators import ARRIVAL, TumblingWindow, per_window

CELSIUS: Final = "decimal(8,4)"
LONGEST_GAP: Final = 24 * 60
"""Rounds, a day of them: beyond, the count was reset or misread, and no message was lost."""


def count_messages(library: DataFrame) -> DataFrame:
    """Per node and hour: messages expected, used, sent twice and missing, and the average (C).

    A round belongs to the hour of its first message; one that no node was heard in, to the hour of
    the round before. A node that was heard on a day (UTC) is expected in every round of the day,
    between the first and the last of all, but in none of a gap of more than `LONGEST_GAP` rounds.
    So a day has the same rows whatever other days are read with it. Of copies the first to arrive
    is used.
    """
    messages = library.groupBy("node", "sequence").agg(
        F.min("event_time").alias("arrived"),
        F.count("*").alias("copies"),
        F.min_by("temperature", F.struct("event_time", *ARRIVAL)).alias("temperature"),
    )
    every = rounds(messages).withColumn("day", F.to_date("began"))
    heard = messages.join(every, "sequence").select("day", "node").distinct()
    expected = every.join(heard, "day")
    used = F.count("copies")
    return per_window(
        expected.join(messages.drop("arrived"), ["node", "sequence"], "left"),
        TumblingWindow(timedelta(hours=1)),
        "began",
        "node",
        expected=F.count("*"),
        used=used,
        duplicates=F.coalesce(F.sum(F.col("copies") - 1), F.lit(0)),
        missing=F.count("*") - used,
        average=(F.sum("temperature") / F.count("temperature")).cast(CELSIUS),
    )


def rounds(messages: DataFrame) -> DataFrame:
    """Each sequence number that was heard or lies in a gap, and when its round `began` (UTC)."""
    heard = messages.groupBy("sequence").agg(F.min("arrived").alias("heard"))
    after = F.lead("sequence").over(Window.orderBy("sequence"))
    gap = F.when(F.col("after") - F.col("sequence") <= LONGEST_GAP, F.col("after") - 1)
    last = F.coalesce(gap, F.col("sequence"))
    every = heard.withColumn("after", after).select(
        F.explode(F.sequence("sequence", last)).alias("sequence")
    )
    before = Window.orderBy("sequence").rowsBetween(Window.unboundedPreceding, 0)
    return every.join(heard, "sequence", "left").select(
        "sequence", F.last("heard", ignorenulls=True).over(before).alias("began")
    )


LIBRARY_HOURS: Final = LIBRARY_ARCHIVE.stream(
    "readings/library_hours",
    (
        "node int, window_start timestamp, window_end timestamp, "
        "expected long COMMENT 'Messages expected.', "
        "used long COMMENT 'Messages used, of copies the first to arrive.', "
        "duplicates long COMMENT 'Further copies of messages.', "
        "missing long COMMENT 'Messages expected that never came.', "
        f"average {CELSIUS} COMMENT 'Average temperature (degrees Celsius).'"
    ),
    reads=LIBRARY,
    build=count_messages,
    description=(
        "Messages expected, used, sent twice and missing, and the average temperature (C), "
        "per node of the library and hour."
    ),
    keys=("node", "window_end"),
    kind="refresh",
    margin=timedelta(hours=1),
    expect=[
        expect.unique(("node", "window_end")),
        ORDERED_WINDOW,
        expect.no_rows_where(
            "expected <> used + missing OR duplicates < 0",
            name="every message is accounted for",
        ),
        expect.no_rows_where(
            "missing > 0.25 * expected AND expected >= 30",
            name="no node loses a quarter of an hour",
            severity="warning",
        ),
    ],
)
