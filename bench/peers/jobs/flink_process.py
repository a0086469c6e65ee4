"""PyFlink: keyed process functions in Python, with state and event-time timers.

python -m bench.peers.jobs.flink_process WORKLOAD DATA_FOLDER OUT_FOLDER
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from pyflink.table import StreamTableEnvironment

from bench.peers.jobs.flink_sql import configuration, declare_sink, declare_source
from bench.peers.workloads import HOUR, JUMP, WORKLOADS, arguments


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


class Jumps(KeyedProcessFunction):  # type: ignore[misc]
    """Keeps the last temperature of each sensor."""

    def open(self, runtime: Any) -> None:
        """Name the state."""
        self.last = runtime.get_state(ValueStateDescriptor("last", Types.DOUBLE()))

    def process_element(self, event: Any, ctx: Any) -> Iterator[Row]:
        """Compare with the last one."""
        before = self.last.value()
        if before is not None and abs(event[2] - before) > JUMP:
            yield Row(event[0], event[1], event[2], before)
        self.last.update(event[2])


class HourlyTips(KeyedProcessFunction):  # type: ignore[misc]
    """Keeps a sum for each open hour of a driver."""

    def open(self, runtime: Any) -> None:
        """Name the state."""
        kinds = (Types.LONG(), Types.DOUBLE())
        self.sums = runtime.get_map_state(MapStateDescriptor("sums", *kinds))

    def process_element(self, event: Any, ctx: Any) -> None:
        """Add the tip to its hour."""
        end = event[1] - event[1] % HOUR + HOUR
        before = self.sums.get(end)
        if before is None:
            ctx.timer_service().register_event_time_timer(end)
        self.sums.put(end, (before or 0.0) + event[2])

    def on_timer(self, at: int, ctx: Any) -> Iterator[Row]:
        """The hour is over."""
        tips = self.sums.get(at)
        self.sums.remove(at)
        yield Row(ctx.get_current_key(), at, tips)


FUNCTIONS: Final = {
    "long_rides": (LongRides, ("ride_id", "is_start", "event_ms", "driver_id")),
    "jumps": (Jumps, ("sensor_id", "event_ms", "temperature")),
    "hourly_tips": (HourlyTips, ("driver_id", "event_ms", "tip")),
}
"""What each is asked, and the columns it reads, the key first."""
KINDS: Final = {"BIGINT": Types.LONG(), "DOUBLE": Types.DOUBLE()}


def main() -> None:
    """Answer one workload."""
    name, data, out = arguments()
    function, read = FUNCTIONS[name]
    workload = WORKLOADS[name]
    data, out = str(Path(data).resolve()), str(Path(out).resolve())
    env = StreamExecutionEnvironment.get_execution_environment(configuration(out))
    tables = StreamTableEnvironment.create(env)
    declare_source(tables, data, workload.inputs[0])
    declare_sink(tables, out, name)
    picked = f"SELECT {', '.join(read)}, ts FROM {workload.inputs[0]} WHERE {read[0]} >= 0"
    events = tables.to_data_stream(tables.sql_query(picked))
    kind = Types.ROW_NAMED(list(workload.names), [KINDS[each] for _, each in workload.columns])
    found = events.key_by(lambda event: event[0], key_type=Types.LONG()).process(function(), kind)
    tables.from_data_stream(found).execute_insert("results").wait()


if __name__ == "__main__":
    main()
