"""Plain Spark's own process function: `transformWithState` in Python, by rows or by pandas frames.

python -m bench.peers.jobs.spark_state WORKLOAD DATA_FOLDER OUT_FOLDER rows|pandas

Settings as in plain_spark, two partitions, and the state store that this operator asks for
(RocksDB). With the default of 200 partitions it takes minutes for 20,000 events. One processor
a workload: it takes the events of a key in a batch as tuples in the order of their time, and gives
tuples; the two forms differ in how tuples come and go.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pandas as pd
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.peers.jobs.plain_spark import drain, parquet, session
from bench.peers.workloads import HOUR, JUMP, WORKLOADS, arguments

STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
Event = tuple[Any, ...]


class Processor(StatefulProcessor):
    """What the workloads share: `fields` of the events (their time first), and of the results."""

    fields: tuple[str, ...]
    columns: tuple[str, ...]
    pandas = False

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self.handle = handle
        self.declare(handle)

    def declare(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state of the workload."""
        raise NotImplementedError

    def take(self, key: int, events: list[Event]) -> Iterable[Event]:
        """Handle the events of a key."""
        raise NotImplementedError

    def expire(self, key: int, at: int) -> Iterable[Event]:
        """Handle a timer of a key."""
        raise NotImplementedError

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Take the events as tuples, in the order of their time."""
        if self.pandas:
            events = [
                event
                for frame in rows
                for event in zip(*[frame[f] for f in self.fields], strict=True)
            ]
        else:
            events = [tuple(row[field] for field in self.fields) for row in rows]
        return self.told(self.take(int(key[0]), sorted(events)))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Hand on the moment."""
        at = expiredTimerInfo.getExpiryTimeInMs()
        return self.told(self.expire(int(key[0]), at))

    def told(self, results: Iterable[Event]) -> Iterator[Any]:
        """The results as rows, or as one frame."""
        if not self.pandas:
            return (Row(**dict(zip(self.columns, each, strict=True))) for each in results)
        found = list(results)
        return iter([pd.DataFrame(found, columns=list(self.columns))] if found else [])

    def close(self) -> None:
        """Nothing is held."""


class LongRides(Processor):
    """Keeps (start, driver, end) of a ride until both are known or two hours have passed."""

    fields = ("event_ms", "is_start", "driver_id")

    def declare(self, handle: StatefulProcessorHandle) -> None:
        """One value a ride."""
        self.ride = handle.getValueState("ride", "start long, driver long, ended long")

    def take(self, key: int, events: list[Event]) -> Iterable[Event]:
        """Pair the two events of a ride."""
        known = self.ride.get()
        start, driver, ended = known or (None, None, None)
        for at, is_start, its_driver in events:
            if is_start:
                start, driver = int(at), int(its_driver)
            else:
                ended = int(at)
        if start is not None and ended is not None:
            if known:
                self.ride.clear()
                self.handle.deleteTimer((known[0] or known[2]) + 2 * HOUR)
            return [(key, driver, start)] if ended - start > 2 * HOUR else []
        self.ride.update((start, driver, ended))
        if not known:
            self.handle.registerTimer((ended if start is None else start) + 2 * HOUR)
        return []

    def expire(self, key: int, at: int) -> Iterable[Event]:
        """Two hours have passed."""
        known = self.ride.get()
        self.ride.clear()
        return [(key, known[1], known[0])] if known and known[0] is not None else []


class Jumps(Processor):
    """Keeps the last temperature of each sensor."""

    fields = ("event_ms", "temperature")

    def declare(self, handle: StatefulProcessorHandle) -> None:
        """One value a sensor."""
        self.last = handle.getValueState("last", "temperature double")

    def take(self, key: int, events: list[Event]) -> Iterable[Event]:
        """Compare with the last one."""
        known = self.last.get()
        before: Any = known[0] if known else None
        found = []
        for at, temperature in events:
            if before is not None and abs(temperature - before) > JUMP:
                found.append((key, int(at), float(temperature), float(before)))
            before = temperature
        self.last.update((float(before),))
        return found


class HourlyTips(Processor):
    """Keeps a sum for each open hour of a driver."""

    fields = ("event_ms", "tip")

    def declare(self, handle: StatefulProcessorHandle) -> None:
        """A map a driver."""
        self.sums = handle.getMapState("sums", "ends long", "tips double")

    def take(self, key: int, events: list[Event]) -> Iterable[Event]:
        """Add the tips of each hour, then touch the state once for each."""
        added: dict[int, float] = {}
        for at, tip in events:
            ends = int(at - at % HOUR + HOUR)
            added[ends] = added.get(ends, 0.0) + float(tip)
        for ends, tips in added.items():
            before = self.sums.getValue((ends,))
            if before is None:
                self.handle.registerTimer(ends)
            self.sums.updateValue((ends,), (tips + (before[0] if before else 0.0),))
        return []

    def expire(self, key: int, at: int) -> Iterable[Event]:
        """The hour is over."""
        (tips,) = self.sums.getValue((at,)) or (None,)
        self.sums.removeKey((at,))
        return [(key, at, tips)]


PROCESSORS: Final = {
    "long_rides": ("ride_id", LongRides),
    "jumps": ("sensor_id", Jumps),
    "hourly_tips": ("driver_id", HourlyTips),
}


def main() -> None:
    """Answer one workload."""
    name, data, out = arguments()
    key, kind = PROCESSORS[name]
    spark = session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    columns = WORKLOADS[name].columns
    processor = kind()
    processor.columns = WORKLOADS[name].names
    processor.pandas = sys.argv[4] == "pandas"
    events = parquet(spark, str(Path(data).resolve()), WORKLOADS[name].inputs[0])
    # Only what is read is carried; the operator knows the watermark without its column.
    picked = events.select(key, *kind.fields).groupBy(key)
    form = picked.transformWithStateInPandas if processor.pandas else picked.transformWithState
    schema = ", ".join(f"{column} {sql_type}" for column, sql_type in columns)
    drain(form(processor, schema, "Append", "EventTime"), out)


if __name__ == "__main__":
    main()
