"""Where results go beside their tables, where the environment names a place for them.

Winners go to the topic TAXI_WINNERS of the brokers TAXI_KAFKA, the activity of zones to the
database TAXI_DATABASE.
"""

from __future__ import annotations

import os
from typing import Final

from assets.taxi.ingest import BROKERS
from rivermark.sinks import Sink

TOPIC: Final = "TAXI_WINNERS"
DATABASE: Final = "TAXI_DATABASE"
ACTIVITY_NOW: Final = "zone_activity_now"
"""The table of the database: the newest quarter of an hour of each zone."""


def winners_sinks() -> tuple[Sink, ...]:
    """The topic of the winners, whose messages have the time of their hour's end."""
    topic = os.environ.get(TOPIC)
    if not topic or not os.environ.get(BROKERS):
        return ()
    # Each sink is imported where it is wanted: a start of the console needs none of them.
    from rivermark.sinks import KafkaSink

    return (KafkaSink(topic=topic, brokers=f"${BROKERS}", timestamp="window_end"),)


def activity_sinks() -> tuple[Sink, ...]:
    """The table that a service asks how much goes on in a zone."""
    if not os.environ.get(DATABASE):
        return ()
    from rivermark.sinks import PostgresUpsert

    now = PostgresUpsert(
        table=ACTIVITY_NOW, database=f"${DATABASE}", key=("zone",), version="window_end"
    )
    return (now,)


def delivery(sinks: tuple[Sink, ...], place: str, start: str) -> str:
    """Where rows go beside their table, or what to start for it."""
    return f"They go to {place}, too." if sinks else f"In no {place} yet: `{start}` has one."
