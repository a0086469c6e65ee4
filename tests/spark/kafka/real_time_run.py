"""Runs readings, limits and what is beyond them in real time."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta

from assets.readings.alerts.limits import BEYOND_LIMITS, LIMIT, beyond_limits
from assets.readings.sensors import SENSOR_READING
from rivermark import Ingest, Output, Stream, Topology
from rivermark.sinks import RealTimeSink
from rivermark.sources import FileSource, KafkaSource
from tests.spark.kafka.real_time_process import host

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


if __name__ == "__main__":
    host(topology(sys.argv[2]), sys.argv[1], sys.argv[3])
