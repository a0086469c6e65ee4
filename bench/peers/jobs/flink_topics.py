"""Flink SQL, live: fares of a topic to Parquet, and tips per driver and window, exactly once.

python -m bench.peers.jobs.flink_topics OUT_FOLDER BROKERS TOPIC   (in Flink's environment)

One job: its Kafka source is read once for both. A watermark for each partition; a checkpoint,
which makes files visible, each 500 ms; else as in flink_sql.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.peers.jobs.flink_live import CHECKPOINTS, FARES
from bench.peers.jobs.flink_sql import configuration, millis
from bench.topic_load import LATENESS_SECONDS, WINDOW_SECONDS

TIPS = "window_end_ms BIGINT, driver_id BIGINT, tips BIGINT, fares BIGINT"


def main() -> None:
    """Run until somebody ends the process."""
    place, brokers, topic = sys.argv[1:]
    out = str(Path(place).resolve())
    settings = configuration(out)
    settings.set_string("execution.checkpointing.interval", CHECKPOINTS)
    chosen = EnvironmentSettings.new_instance().with_configuration(settings)
    tables = TableEnvironment.create(chosen.in_streaming_mode().build())
    tables.execute_sql(
        f"""CREATE TABLE fares ({FARES},
        WATERMARK FOR event_time AS event_time - INTERVAL '{LATENESS_SECONDS}' SECOND)
        WITH ('connector' = 'kafka', 'topic' = '{topic}',
        'properties.bootstrap.servers' = '{brokers}', 'properties.group.id' = 'bench',
        'properties.isolation.level' = 'read_committed',
        'scan.startup.mode' = 'earliest-offset', 'format' = 'json',
        'json.timestamp-format.standard' = 'ISO-8601')"""
    )
    for name, columns in (("admitted", FARES), ("tips", TIPS)):
        tables.execute_sql(
            f"""CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem',
            'format' = 'parquet', 'parquet.utc-timezone' = 'true',
            'path' = 'file://{out}/{name}')"""
        )
    both = tables.create_statement_set()
    both.add_insert_sql("INSERT INTO admitted SELECT * FROM fares")
    both.add_insert_sql(
        f"""INSERT INTO tips SELECT {millis("window_end")}, driver_id,
        CAST(SUM(tip) AS BIGINT), COUNT(*) FROM TABLE(TUMBLE(TABLE fares, DESCRIPTOR(event_time),
        INTERVAL '{WINDOW_SECONDS}' SECOND)) GROUP BY window_start, window_end, driver_id"""
    )
    job = both.execute()
    sys.stdout.write(json.dumps({"at": time.time(), "event": "report"}) + "\n")
    sys.stdout.flush()
    job.wait()


if __name__ == "__main__":
    main()
