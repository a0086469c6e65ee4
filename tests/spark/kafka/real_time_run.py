"""Runs a stream with a sink in real time until it is killed: a process of its own, for tests.

Its session has Spark's connector for Kafka, which that of the other tests has not.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from assets.readings.alerts.limits import BEYOND_LIMITS, LIMIT, beyond_limits
from assets.readings.sensors import SENSOR_READING
from rivermark import FileSource, Ingest, KafkaSource, Output, RealTimeSink, Stream, Topology
from rivermark.cli.session import engine
from rivermark.runtime.supervision.hosting import Hosting
from rivermark.runtime.supervision.report import Report
from rivermark.settings import Settings

READINGS = "readings.sensors"
ALERTS = "readings.alerts"


def topology(brokers: str) -> Topology:
    """Readings from a topic, limits from files, and what is beyond them."""
    readings = Ingest(
        name="test/readings",
        source=KafkaSource(brokers=brokers, topics=READINGS),
        contract=SENSOR_READING,
        lateness=timedelta(minutes=5),
        description="Readings.",
        group="test",
    )
    limits = Ingest(
        name="test/limits",
        source=FileSource(folder="limits", pattern="*.json"),
        contract=LIMIT,
        kind="lookup",
        keys=("rule",),
        description="Limits.",
        group="test",
    )
    alerts = Stream(
        reads=(readings,),
        static=(limits.versions,),
        build=beyond_limits,
        writes=(
            Output(
                replace(BEYOND_LIMITS, name="test/alerts"),
                sinks=(RealTimeSink(topic=ALERTS, brokers=brokers, every=timedelta(seconds=5)),),
            ),
        ),
        group="test",
    )
    return Topology([readings, limits, alerts])


def tell(report: Report) -> None:
    """Print a report, for the test that started this."""
    told = {"stream": report.stream, "error": report.error, **report.numbers}
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


def main(home: str, brokers: str, mode: str) -> None:
    """Run the streams, live or until they are drained."""
    settings = Settings(home=Path(home), trigger_seconds=0.1)
    deployed = topology(brokers)
    hosting = Hosting(
        settings=settings,
        topology=deployed,
        streams=deployed.streams,
        run_id=mode,
        continuous=mode == "live",
    )
    with engine(settings, "long", hosting.real_time_slots()) as spark:
        hosting.run(
            spark,
            threading.Event(),
            on_report=tell,
            report_every=timedelta(seconds=5),
            paused_since=datetime.now(UTC),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
