"""This platform, live: fares of a topic to their tables, and tips per driver and window.

python -m bench.peers.jobs.ours_topics HOME BROKERS TOPIC
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.topic_load import LATENESS_SECONDS, WINDOW_SECONDS
from bench.workload import live
from rivermark import Contract, Field, Ingest, Stream, Table, Topology
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.sources import KafkaSource, PerProducer

FARES: Final = "bench/fares"
TIPS: Final = "bench/tips"
LATENESS: Final = timedelta(seconds=LATENESS_SECONDS)
IDLE: Final = timedelta(seconds=10)
"""One watermark for all partitions would call late what one of them brings after the others."""
WINDOW: Final = TumblingWindow(timedelta(seconds=WINDOW_SECONDS))
MONEY: Final = "decimal(12,2)"
FARE: Final = Contract(
    fields=(
        Field("ride_id", "bigint", required=True),
        Field("taxi_id", "bigint", required=True),
        Field("driver_id", "bigint", required=True),
        Field("event_time", "timestamp", required=True),
        Field("payment_type", "string", required=True),
        Field("tip", MONEY, required=True),
        Field("tolls", MONEY, required=True),
        Field("total_fare", MONEY, required=True),
    ),
    event_time="event_time",
    keys=("ride_id",),
)


def tips_per_window(fares: DataFrame) -> DataFrame:
    """The sum of tips, and how many fares, of each driver and window."""
    windows = per_window(
        fares,
        WINDOW,
        "event_time",
        "driver_id",
        tips=F.sum("tip").cast("bigint"),
        fares=F.count("*"),
    )
    end = F.unix_millis("window_end").alias("window_end_ms")
    return windows.select(end, "driver_id", "tips", "fares")


def topology(brokers: str, topic: str) -> Topology:
    """The ingest, and the windows of what it admits."""
    fares = Ingest(
        name=FARES,
        source=KafkaSource(brokers=brokers, topics=topic),
        contract=FARE,
        lateness=LATENESS,
        watermark=PerProducer(idle=IDLE),
        description="Measured fares.",
        group="bench",
    )
    tips = Stream(
        name=TIPS,
        reads=(fares,),
        build=tips_per_window,
        writes=Table(
            name=TIPS,
            schema="window_end_ms BIGINT, driver_id BIGINT, tips BIGINT, fares BIGINT",
            description="Tips of each driver and window.",
        ),
        description="Tips of each driver and window.",
        group="bench",
    )
    return Topology([fares, tips])


def main() -> None:
    """Run until somebody ends the process."""
    home, brokers, topic = sys.argv[1:]
    live(Path(home), [FARES, TIPS], topology(brokers, topic))


if __name__ == "__main__":
    main()
