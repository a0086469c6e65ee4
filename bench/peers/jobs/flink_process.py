"""PyFlink: a keyed process function in Python, with state and event-time timers.

python -m bench.peers.jobs.flink_process long_rides DATA_FOLDER OUT_FOLDER
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

from bench.peers.jobs.flink_sql import configuration, declare_sink, declare_source
from bench.peers.workloads import HOUR, WORKLOADS, arguments


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


READ: Final = ("ride_id", "is_start", "event_ms", "driver_id")
"""The columns that the rule reads, the key first."""


def main() -> None:
    """Run the workload."""
    name, data, out = arguments()
    workload = WORKLOADS[name]
    data, out = str(Path(data).resolve()), str(Path(out).resolve())
    env = StreamExecutionEnvironment.get_execution_environment(configuration(out))
    tables = StreamTableEnvironment.create(env)
    declare_source(tables, data, workload.inputs[0])
    declare_sink(tables, out, name)
    picked = f"SELECT {', '.join(READ)}, ts FROM {workload.inputs[0]} WHERE {READ[0]} >= 0"
    events = tables.to_data_stream(tables.sql_query(picked))
    kind = Types.ROW_NAMED(list(workload.names), [Types.LONG()] * len(workload.columns))
    by_ride = events.key_by(lambda event: event[0], key_type=Types.LONG())
    alerts = by_ride.process(LongRides(), kind)
    tables.from_data_stream(alerts).execute_insert("results").wait()


if __name__ == "__main__":
    main()
