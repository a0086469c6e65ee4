"""Plain Spark's own process function: `transformWithState` in Python, by rows or by pandas frames.

python -m bench.peers.jobs.spark_state long_rides DATA_FOLDER OUT_FOLDER rows|pandas

Settings as in plain_spark, two partitions, and the state store that this operator asks for
(RocksDB). With the default of 200 partitions it takes minutes for 20,000 events. It takes the
events of a key in a batch as tuples in the order of their time; the two forms differ in how tuples
come and go.
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
from bench.peers.workloads import HOUR, WORKLOADS, arguments, ddl

STORE: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
FIELDS: Final = ("event_ms", "is_start", "driver_id")
"""What the rule reads of an event beside its key."""
COLUMNS: Final = WORKLOADS["long_rides"].names
Event = tuple[Any, ...]


class LongRides(StatefulProcessor):
    """Keeps (start, driver, end) of a ride until both are known or two hours have passed."""

    def __init__(self, *, pandas: bool) -> None:
        self.pandas = pandas

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare one value a ride."""
        self.handle = handle
        self.ride = handle.getValueState("ride", "start long, driver long, ended long")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Take the events as tuples, in the order of their time."""
        if self.pandas:
            events = [
                event for frame in rows for event in zip(*[frame[f] for f in FIELDS], strict=True)
            ]
        else:
            events = [tuple(row[field] for field in FIELDS) for row in rows]
        return self.sent(self.pair(int(key[0]), sorted(events)))

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Emit a ride without an END two hours after its START."""
        known = self.ride.get()
        self.ride.clear()
        if known is None or known[0] is None:
            return self.sent([])
        return self.sent([(int(key[0]), known[1], known[0])])

    def pair(self, key: int, events: list[Event]) -> Iterable[Event]:
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

    def sent(self, results: Iterable[Event]) -> Iterator[Any]:
        """The results as rows, or as one frame."""
        if not self.pandas:
            return (Row(**dict(zip(COLUMNS, each, strict=True))) for each in results)
        rows = list(results)
        return iter([pd.DataFrame(rows, columns=list(COLUMNS))] if rows else [])

    def close(self) -> None:
        """Nothing is held."""


def main() -> None:
    """Run the workload."""
    name, data, out = arguments()
    workload, processor = WORKLOADS[name], LongRides(pandas=sys.argv[4] == "pandas")
    spark = session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    events = parquet(spark, str(Path(data).resolve()), workload.inputs[0])
    # Only what is read is carried; the operator knows the watermark without its column.
    picked = events.select("ride_id", *FIELDS).groupBy("ride_id")
    form = picked.transformWithStateInPandas if processor.pandas else picked.transformWithState
    drain(form(processor, ddl(workload.columns), "Append", "EventTime"), out)


if __name__ == "__main__":
    main()
