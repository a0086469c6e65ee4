"""Flink SQL, streaming without end: fares from JSON files that land, to Parquet, exactly once.

python -m bench.peers.jobs.flink_live LANDING_FOLDER OUT_FOLDER   (in Flink's environment)

The folder is looked at each 100 ms and a checkpoint, which makes files visible, is taken each
500 ms; else as in flink_sql. Prints a report once the job runs, as the platform does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.peers.jobs.flink_sql import configuration

FARES = """ride_id BIGINT, taxi_id BIGINT, driver_id BIGINT, event_time TIMESTAMP_LTZ(3),
    payment_type STRING, tip DECIMAL(12, 2), tolls DECIMAL(12, 2), total_fare DECIMAL(12, 2)"""
CHECKPOINTS = "500ms"


def main() -> None:
    """Run until somebody ends the process."""
    landing, out = (str(Path(each).resolve()) for each in sys.argv[1:3])
    settings = configuration(out)
    settings.set_string("execution.checkpointing.interval", CHECKPOINTS)
    chosen = EnvironmentSettings.new_instance().with_configuration(settings)
    tables = TableEnvironment.create(chosen.in_streaming_mode().build())
    tables.execute_sql(
        f"""CREATE TABLE fares ({FARES}) WITH ('connector' = 'filesystem', 'format' = 'json',
        'json.timestamp-format.standard' = 'ISO-8601', 'path' = 'file://{landing}',
        'source.monitor-interval' = '100ms')"""
    )
    tables.execute_sql(
        f"""CREATE TABLE admitted ({FARES}) WITH ('connector' = 'filesystem',
        'format' = 'parquet', 'parquet.utc-timezone' = 'true', 'path' = 'file://{out}')"""
    )
    job = tables.execute_sql("INSERT INTO admitted SELECT * FROM fares")
    sys.stdout.write(json.dumps({"at": time.time(), "event": "report"}) + "\n")
    sys.stdout.flush()
    job.wait()


if __name__ == "__main__":
    main()
