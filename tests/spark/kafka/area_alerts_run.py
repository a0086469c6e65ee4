"""Runs the ingest of rides, the areas and their alerts as deployed, but with brief batches."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta

from assets.taxi.areas import area_streams
from assets.taxi.ingest import RIDE_EVENTS
from rivermark import Topology
from rivermark.sources import KafkaSource
from tests.spark.kafka.real_time_process import host

RIDES = "taxi.rides"
ALERTS = "taxi.area_alerts"


def topology(brokers: str) -> Topology:
    """Rides from a topic, areas from files, and rides that start within areas."""
    rides = replace(RIDE_EVENTS, source=KafkaSource(brokers=brokers, topics=RIDES))
    every = timedelta(seconds=5)
    return Topology([rides, *area_streams(rides, brokers=brokers, topic=ALERTS, every=every)])


if __name__ == "__main__":
    host(topology(sys.argv[2]), sys.argv[1], sys.argv[3])
