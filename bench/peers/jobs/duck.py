"""DuckDB: a query over the files, its result copied to Parquet. Also what others are compared with.

python -m bench.peers.jobs.duck WORKLOAD DATA_FOLDER OUT_FOLDER
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb

from bench.peers.workloads import (
    BEGIN,
    HOUR,
    JSON_FILES,
    JUMP,
    MINUTE,
    SCHEMAS,
    WORKLOADS,
    arguments,
    in_city,
)

AVERAGE: Final = 5 * MINUTE

SQL: Final = {
    "door": """
        SELECT ride_id, is_start, epoch_ms(event_time) AS event_ms, start_lon, start_lat, end_lon,
            end_lat, passenger_count, taxi_id, driver_id
        FROM rides WHERE ride_id >= 0""",
    "cleanse": f"""
        SELECT ride_id, is_start, event_ms, start_lon, start_lat, passenger_count, driver_id
        FROM rides WHERE ride_id >= 0
        AND {in_city("start_lon", "start_lat")} AND {in_city("end_lon", "end_lat")}""",
    "tips_max": f"""
        SELECT window_end_ms, driver_id, sum_tips FROM (
            SELECT event_ms - event_ms % {HOUR} + {HOUR} AS window_end_ms, driver_id,
                sum(tip) AS sum_tips
            FROM fares WHERE ride_id >= 0 GROUP BY ALL)
        QUALIFY row_number() OVER (
            PARTITION BY window_end_ms ORDER BY sum_tips DESC, driver_id) = 1""",
    "tumbling": f"""
        SELECT event_ms - event_ms % {AVERAGE} AS window_start_ms,
            event_ms - event_ms % {AVERAGE} + {AVERAGE} AS window_end_ms,
            sensor_id, avg(temperature) AS avg_temp, count(*) AS cnt
        FROM readings WHERE sensor_id >= 0 GROUP BY ALL""",
    "sliding": f"""
        SELECT w AS window_start_ms, w + {AVERAGE} AS window_end_ms, sensor_id,
            sum(s) / sum(n) AS avg_temp, sum(n)::BIGINT AS cnt
        FROM (
            SELECT pane - i * {MINUTE} AS w, sensor_id, s, n FROM (
                SELECT event_ms - event_ms % {MINUTE} AS pane, sensor_id,
                    sum(temperature) AS s, count(*) AS n
                FROM readings WHERE sensor_id >= 0 GROUP BY ALL), range({AVERAGE // MINUTE}) t(i))
        GROUP BY ALL""",
    "join": f"""
        SELECT r.ride_id, r.driver_id, r.event_ms, r.start_lon, r.start_lat, r.passenger_count,
            f.payment_type, f.tip, f.tolls, f.total_fare
        FROM rides r JOIN fares f ON r.ride_id = f.ride_id
            AND f.event_ms BETWEEN r.event_ms - {5 * MINUTE} AND r.event_ms + {5 * MINUTE}
        WHERE r.is_start AND r.ride_id >= 0""",
    "long_rides": f"""
        SELECT s.ride_id, s.driver_id, s.event_ms AS start_ms
        FROM (FROM rides WHERE is_start AND ride_id >= 0) s
        LEFT JOIN (FROM rides WHERE NOT is_start) e ON s.ride_id = e.ride_id
            AND e.event_ms BETWEEN s.event_ms AND s.event_ms + {2 * HOUR}
        WHERE e.ride_id IS NULL""",
    "jumps": f"""
        SELECT sensor_id, event_ms, temperature, before FROM (
            SELECT *, lag(temperature) OVER (PARTITION BY sensor_id ORDER BY event_ms) AS before
            FROM wide_readings WHERE sensor_id >= 0)
        WHERE abs(temperature - before) > {JUMP}""",
    "hourly_tips": f"""
        SELECT driver_id, event_ms - event_ms % {HOUR} + {HOUR} AS window_end_ms, sum(tip) AS tips
        FROM wide_fares WHERE driver_id >= 0 GROUP BY ALL""",
    "winners": f"""
        SELECT window_end_ms, driver_id, sum_tips FROM (
            SELECT event_ms - event_ms % {HOUR} + {HOUR} AS window_end_ms, driver_id,
                sum(tip) AS sum_tips
            FROM (
                SELECT try_cast(driver_id AS BIGINT) AS driver_id,
                    epoch_ms(try_cast(event_time AS TIMESTAMPTZ)) AS event_ms,
                    try_cast(tip AS DOUBLE) AS tip
                FROM feed WHERE try_cast(ride_id AS BIGINT) >= 0)
            WHERE driver_id IS NOT NULL AND tip IS NOT NULL AND event_ms >= {BEGIN}
            GROUP BY ALL)
        QUALIFY row_number() OVER (
            PARTITION BY window_end_ms ORDER BY sum_tips DESC, driver_id) = 1""",
}


def source(data: str, folder: str, name: str) -> str:
    """The input as a table expression."""
    if folder == "parquet":
        return f"read_parquet('{data}/parquet/{name}/*.parquet')"
    kinds = {column: "VARCHAR" if kind == "STRING" else kind for column, kind in SCHEMAS[name]}
    kinds = {**kinds, "event_time": "TIMESTAMPTZ"}
    kinds.pop("event_ms")
    options = "format = 'newline_delimited'"
    if name == "feed":
        # What is broken is told by the query, which takes its columns as texts.
        kinds, options = dict.fromkeys(kinds, "VARCHAR"), f"{options}, ignore_errors = true"
    columns = ", ".join(f"'{column}': '{kind}'" for column, kind in kinds.items())
    files = f"{data}/json/{JSON_FILES[name]}/*.json"
    return f"read_json('{files}', columns = {{{columns}}}, {options})"


def main() -> None:
    """Run one workload."""
    name, data, out = arguments()
    workload = WORKLOADS[name]
    db = duckdb.connect(config={"threads": 2})
    db.execute("SET TimeZone = 'UTC'")
    for each in workload.inputs:
        db.execute(f"CREATE VIEW {each} AS FROM {source(data, workload.folder, each)}")
    Path(out).mkdir(parents=True)
    db.execute(f"COPY ({SQL[name]}) TO '{out}/part-0.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    main()
