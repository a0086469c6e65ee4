"""Taxi events in, alerts and winners back to topics and to PostgreSQL, as a process of its own.

    python -m tests.stories.taxi_by_topics HOME RUN_ID live|drain [BROKERS]

It runs until SIGTERM, or with `drain` until all that is there has been read. Events come from
topics; without brokers they come from files, and results stay in their tables.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from assets.taxi.long_rides import LONG_RIDES
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark import AnyStream, Ingest, Output, Stream, Topology
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.hosting import stop_on_signals
from rivermark.runtime.supervision.run import run_bounded, run_continuous
from rivermark.settings import Settings
from rivermark.sinks import KafkaSink, PostgresAppend
from rivermark.sources import KafkaSource

SOURCES: Final = {"rides": RIDE_EVENTS, "fares": FARE_EVENTS}
TARGETS: Final = {"alerts": LONG_RIDES, "winners": HOURLY_WINNERS}
"""By topic, and by table of PostgreSQL."""
DERIVED: Final = (CLEAN_RIDES, CLEAN_FARES, DRIVER_TIPS, *TARGETS.values())


def ingests(brokers: str) -> list[Ingest]:
    """The ingests of ride and fare events, from topics where there are brokers."""
    if not brokers:
        return [*SOURCES.values()]
    return [
        replace(ingest, source=KafkaSource(brokers=brokers, topics=topic, max_messages=5_000))
        for topic, ingest in SOURCES.items()
    ]


def topology(brokers: str) -> Topology:
    """The streams from the events to alerts and winners."""
    return Topology(_streams(brokers))


def _streams(brokers: str) -> Iterator[AnyStream]:
    """The streams, each with those that it reads as they are here."""
    here: dict[str, Ingest | Stream] = {each.name: each for each in ingests(brokers)}
    yield from here.values()
    topics = {stream.name: topic for topic, stream in TARGETS.items()}
    for stream in DERIVED:
        reads = tuple(here.get(getattr(read, "name", ""), read) for read in stream.reads)
        outputs = stream.outputs
        if brokers and stream.name in topics:
            topic = topics[stream.name]
            sinks = (
                KafkaSink(topic=topic, brokers=brokers),
                PostgresAppend(table=topic, database="$TEST_DATABASE"),
            )
            outputs = (Output(stream.tables[0], sinks=sinks),)
        here[stream.name] = replace(stream, reads=reads, writes=outputs)
        yield here[stream.name]


def main() -> None:
    """Run until the end."""
    home, run_id, mode, *brokers = sys.argv[1:]
    settings = Settings(home=Path(home), trigger_seconds=0.5)
    streams = topology("".join(brokers))
    spark = open_session(settings, "long")
    with stop_on_signals() as stop:
        if mode == "drain":
            run_bounded(spark, settings, streams, streams.streams, run_id=run_id)
        else:
            run_continuous(spark, settings, streams, streams.streams, run_id=run_id, stop=stop)


if __name__ == "__main__":
    main()
