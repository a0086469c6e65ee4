"""Pathway: files read to their end, results written as JSON lines.

python -m bench.peers.jobs.pathway_rows WORKLOAD DATA_FOLDER OUT_FOLDER  (in Pathway's environment)

Lines, since its Delta sink asks for a licence key. A static source ends when all is read; small
batches let the watermark move on, without which no row is late. One worker thread, its default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pathway as pw

from bench.peers.workloads import (
    HOUR,
    JSON_FILES,
    LATENESS_SECONDS,
    SCHEMAS,
    arguments,
)

TYPES: Final = {"BIGINT": int, "INT": int, "BOOLEAN": bool, "DOUBLE": float, "STRING": str}
BATCH_MILLIS: Final = 100
LATENESS: Final = LATENESS_SECONDS * 1_000


def lines(data: str, name: str) -> Any:
    """The rows of JSON lines, their time in milliseconds; what cannot be read is an error value."""
    kinds = {column: TYPES[kind] for column, kind in SCHEMAS[name] if column != "event_ms"}
    schema = pw.schema_from_types(**kinds, event_time=str)
    rows = pw.io.jsonlines.read(
        f"{data}/json/{JSON_FILES[name]}",
        schema=schema,
        mode="static",
        autocommit_duration_ms=BATCH_MILLIS,
    )
    at = rows.event_time.dt.strptime("%Y-%m-%dT%H:%M:%S.%fZ", contains_timezone=False)
    # A double, which a conversion to whole numbers cuts off.
    millis = pw.cast(int, at.dt.timestamp(unit="ms") + 0.5)
    return rows.without(rows.event_time).with_columns(event_ms=millis)


def typed_rides(data: str) -> Any:
    """Rides, typed."""
    rides = lines(data, "rides")
    return rides.filter(rides.ride_id >= 0)


def winners(data: str) -> Any:
    """The driver with the most tips of each hour, once the hour is over."""
    fares = lines(data, "feed").select(pw.this.driver_id, pw.this.tip, pw.this.event_ms)
    whole = fares.remove_errors()
    sums = whole.windowby(
        whole.event_ms,
        window=pw.temporal.tumbling(duration=HOUR),
        instance=whole.driver_id,
        behavior=pw.temporal.exactly_once_behavior(shift=LATENESS),
    ).reduce(
        window_end_ms=pw.this._pw_window_end,
        driver_id=pw.this._pw_instance,
        sum_tips=pw.reducers.sum(pw.this.tip),
    )
    best = sums.groupby(sums.window_end_ms).reduce(
        sums.window_end_ms, best=pw.reducers.max(pw.make_tuple(sums.sum_tips, -sums.driver_id))
    )
    return best.select(best.window_end_ms, driver_id=-best.best.get(1), sum_tips=best.best.get(0))


def main() -> None:
    """Run one workload."""
    name, data, out = arguments()
    Path(out).mkdir(parents=True)
    rows = {"door": typed_rides, "winners": winners}[name](data)
    pw.io.jsonlines.write(rows, f"{out}/part-0.jsonl")
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, terminate_on_error=False)


if __name__ == "__main__":
    main()
