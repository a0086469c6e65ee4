"""Flink SQL, streaming: event-time watermarks, checkpoints each 5 s, exactly-once Parquet files.

python -m bench.peers.jobs.flink_sql WORKLOAD DATA_FOLDER OUT_FOLDER   (in Flink's environment)

A mini-cluster of two slots in one process, state on the heap, objects reused: the quickest of what
was tried for these sizes. FLINK_JARS in BENCH_FLINK_JARS, separated by `;`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableEnvironment

from bench.peers.workloads import (
    ADMITTING,
    JUMP,
    LATENESS_SECONDS,
    RIDES,
    SCHEMAS,
    WORKLOADS,
    arguments,
    in_city,
)


def millis(column: str) -> str:
    """A window's border as milliseconds."""
    since = "TIMESTAMP '1970-01-01 00:00:00'"
    return f"TIMESTAMPDIFF(SECOND, {since}, {column}) * CAST(1000 AS BIGINT)"


def averages(windows: str) -> str:
    """The average of each window of the readings."""
    return f"""
        SELECT {millis("window_start")}, {millis("window_end")}, sensor_id, AVG(temperature),
            COUNT(*)
        FROM TABLE({windows}) WHERE sensor_id >= 0 GROUP BY window_start, window_end, sensor_id"""


def winners(fares: str, which: str) -> str:
    """The driver with the most tips of each hour."""
    return f"""
        SELECT {millis("window_end")}, driver_id, sum_tips FROM (
            SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end
                ORDER BY sum_tips DESC, driver_id ASC) AS place
            FROM (
                SELECT window_start, window_end, driver_id, SUM(tip) AS sum_tips
                FROM TABLE(TUMBLE(TABLE {fares}, DESCRIPTOR(ts), INTERVAL '1' HOUR))
                WHERE {which} GROUP BY window_start, window_end, driver_id))
        WHERE place <= 1"""


SQL: Final = {
    "door": "SELECT * FROM rides WHERE ride_id >= 0",
    "cleanse": f"""
        SELECT ride_id, is_start, event_ms, start_lon, start_lat, passenger_count, driver_id
        FROM rides WHERE ride_id >= 0
        AND {in_city("start_lon", "start_lat")} AND {in_city("end_lon", "end_lat")}""",
    "tips_max": winners("fares", "ride_id >= 0"),
    "winners": winners("feed", "driver_id IS NOT NULL AND tip IS NOT NULL AND ride_id >= 0"),
    "tumbling": averages("TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' MINUTE)"),
    "sliding": averages(
        "HOP(TABLE readings, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)"
    ),
    "join": """
        SELECT r.ride_id, r.driver_id, r.event_ms, r.start_lon, r.start_lat, r.passenger_count,
            f.payment_type, f.tip, f.tolls, f.total_fare
        FROM (SELECT * FROM rides WHERE is_start AND ride_id >= 0) r
        JOIN (SELECT * FROM fares WHERE ride_id >= 0) f
        ON r.ride_id = f.ride_id
            AND f.ts BETWEEN r.ts - INTERVAL '5' MINUTE AND r.ts + INTERVAL '5' MINUTE""",
    "long_rides": """
        SELECT s.ride_id, s.driver_id, s.event_ms
        FROM (SELECT * FROM rides WHERE is_start AND ride_id >= 0) s
        LEFT JOIN (SELECT * FROM rides WHERE NOT is_start AND ride_id >= 0) e
        ON s.ride_id = e.ride_id AND e.ts BETWEEN s.ts AND s.ts + INTERVAL '2' HOUR
        WHERE e.ride_id IS NULL""",
    "jumps": f"""
        SELECT sensor_id, event_ms, temperature, before FROM (
            SELECT sensor_id, event_ms, temperature,
                LAG(temperature) OVER (PARTITION BY sensor_id ORDER BY ts) AS before
            FROM wide_readings)
        WHERE ABS(temperature - before) > {JUMP}""",
    "hourly_tips": f"""
        SELECT driver_id, {millis("window_end")}, SUM(tip)
        FROM TABLE(TUMBLE(TABLE wide_fares, DESCRIPTOR(ts), INTERVAL '1' HOUR))
        WHERE driver_id >= 0 GROUP BY window_start, window_end, driver_id""",
}


def configuration(out: str) -> Configuration:
    """Two slots, checkpoints each 5 s."""
    settings = Configuration()
    for name, value in {
        "pipeline.jars": ";".join(f"file://{jar}" for jar in jars()),
        "pipeline.object-reuse": "true",
        "parallelism.default": "2",
        "taskmanager.numberOfTaskSlots": "2",
        "taskmanager.memory.managed.size": "1g",
        "taskmanager.memory.network.max": "256mb",
        "table.local-time-zone": "UTC",
        "python.client.executable": sys.executable,
        "python.executable": sys.executable,
        "execution.checkpointing.interval": "5s",
        "execution.checkpointing.mode": "EXACTLY_ONCE",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": f"file://{out}-checkpoint",
    }.items():
        settings.set_string(name, value)
    return settings


def jars() -> list[str]:
    """The JARs of the variable."""
    return os.environ["BENCH_FLINK_JARS"].split(os.pathsep)


def declare_source(tables: TableEnvironment, data: str, name: str) -> None:
    """Declare Parquet files as a table with a watermark."""
    tables.execute_sql(
        f"""CREATE TABLE {name} ({declared(SCHEMAS[name])}, ts AS TO_TIMESTAMP_LTZ(event_ms, 3),
        WATERMARK FOR ts AS ts - INTERVAL '{LATENESS_SECONDS}' SECOND)
        WITH ('connector' = 'filesystem', 'format' = 'parquet',
        'path' = 'file://{data}/split/{name}')"""
    )


def declare_lines(tables: TableEnvironment, data: str, name: str) -> None:
    """Declare JSON lines as a table; those of the feed with a watermark.

    What cannot be read becomes null, a line that is no JSON is left out, and a row without a time,
    which a watermark must not meet, is as old as can be.
    """
    watermark, folder = "", name
    if name == "feed":
        folder = "feed/dealt"
        watermark = f""", ts AS COALESCE(event_time, TO_TIMESTAMP_LTZ(0, 3)),
            WATERMARK FOR ts AS ts - INTERVAL '{LATENESS_SECONDS}' SECOND"""
    tables.execute_sql(
        f"""CREATE TABLE {name} ({declared(with_time(SCHEMAS[name]))}{watermark})
        WITH ('connector' = 'filesystem', 'format' = 'json',
        'json.timestamp-format.standard' = 'ISO-8601',
        'json.ignore-parse-errors' = '{str(name == "feed").lower()}',
        'path' = 'file://{data}/json/{folder}')"""
    )


def declare_sink(tables: TableEnvironment, out: str, name: str) -> None:
    """Declare the output: files that appear when a checkpoint commits them."""
    columns = with_time(RIDES) if name == "door" else WORKLOADS[name].columns
    tables.execute_sql(
        f"""CREATE TABLE results ({declared(columns)}) WITH ('connector' = 'filesystem',
        'format' = 'parquet', 'parquet.utc-timezone' = 'true', 'path' = 'file://{out}')"""
    )


def with_time(columns: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The columns with the time as a timestamp, behind the others as in the lines."""
    named = [column for column in columns if column[0] != "event_ms"]
    return [*named, ("event_time", "TIMESTAMP_LTZ(3)")]


def declared(columns: Iterable[tuple[str, str]]) -> str:
    """Columns as they stand in a declaration."""
    return ", ".join(f"{column} {kind}" for column, kind in columns)


def main() -> None:
    """Run one workload."""
    name, data, out = arguments()
    data, out = str(Path(data).resolve()), str(Path(out).resolve())
    chosen = EnvironmentSettings.new_instance().with_configuration(configuration(out))
    tables = TableEnvironment.create(chosen.in_streaming_mode().build())
    declare = declare_lines if name in ADMITTING else declare_source
    for each in WORKLOADS[name].inputs:
        declare(tables, data, each)
    declare_sink(tables, out, name)
    tables.execute_sql(f"INSERT INTO results {SQL[name]}").wait()


if __name__ == "__main__":
    main()
