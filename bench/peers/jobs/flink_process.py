"""PyFlink: long rides as a keyed process function in Python, with state and an event-time timer.

python -m bench.peers.jobs.flink_process long_rides DATA_FOLDER OUT_FOLDER
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

from bench.peers.jobs.flink_sql import configuration, declare_sink, declare_source
from bench.peers.workloads import HOUR, arguments


class LongRides(KeyedProcessFunction):  # type: ignore[misc]
    """Keeps (start, driver, end) of a ride until both are known or two hours have passed."""

    def open(self, runtime: Any) -> None:
        """Name the state."""
        kind = Types.PICKLED_BYTE_ARRAY()
        self.ride = runtime.get_state(ValueStateDescriptor("ride", kind))

    def process_element(self, event: Any, ctx: Any) -> Iterator[Row]:
        """Pair the two events of a ride."""
        known = self.ride.value()
        start, driver, ended = known or (None, None, None)
        if event[1]:
            start, driver = event[2], event[3]
        else:
            ended = event[2]
        if start is not None and ended is not None:
            if known:
                self.ride.clear()
                first = known[0] if known[0] is not None else known[2]
                ctx.timer_service().delete_event_time_timer(first + 2 * HOUR)
            if ended - start > 2 * HOUR:
                yield Row(event[0], driver, start)
            return
        self.ride.update((start, driver, ended))
        if known is None:
            ctx.timer_service().register_event_time_timer(event[2] + 2 * HOUR)

    def on_timer(self, at: int, ctx: Any) -> Iterator[Row]:
        """Two hours have passed."""
        known = self.ride.value()
        if known is None:
            return
        self.ride.clear()
        if known[0] is not None:
            yield Row(ctx.get_current_key(), known[1], known[0])


def main() -> None:
    """Answer the one workload."""
    name, data, out = arguments()
    data, out = str(Path(data).resolve()), str(Path(out).resolve())
    env = StreamExecutionEnvironment.get_execution_environment(configuration(out))
    tables = StreamTableEnvironment.create(env)
    declare_source(tables, data, "rides")
    declare_sink(tables, out, name)
    picked = "SELECT ride_id, is_start, event_ms, driver_id, ts FROM rides WHERE ride_id >= 0"
    rides = tables.to_data_stream(tables.sql_query(picked))
    kind = Types.ROW_NAMED(
        ["ride_id", "driver_id", "start_ms"], [Types.LONG(), Types.LONG(), Types.LONG()]
    )
    found = rides.key_by(lambda ride: ride[0], key_type=Types.LONG()).process(LongRides(), kind)
    tables.from_data_stream(found).execute_insert("results").wait()


if __name__ == "__main__":
    main()
