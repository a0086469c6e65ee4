"""Measures the core of process functions alone: events per CPU second, bytes per key, drift.

    python -m bench process_core                 all workloads, 1 M events over 200,000 keys
    python -m bench process_core --events 5000000 --only long_rides
    python -m cProfile -s tottime -m bench.process_core --only long_rides

No Spark: events are dealt to buckets beforehand, as Spark's shuffle would, and only the engine's
runs are timed (process CPU time, including reading and writing every bucket's state).
"""

from __future__ import annotations

import random
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bench.figures import options_of, report
from bench.process_workloads import WORKLOADS, Workload, end_of, open_rides
from rivermark.process import BEGINNING, END_OF_TIME
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.engine.paging import PAGE_FROM
from rivermark.process.engine.stored_state import StoredBucket

TOUCHES = 12


@dataclass
class Result:
    """Result of a workload; bytes are those of all buckets at their largest."""

    events: int = 0
    seconds: float = 0.0
    rows: int = 0
    state_bytes: int = 0
    keys: int = 0
    left_over: int = 0

    def figures(self, name: str) -> dict[str, float]:
        """As figures whose names begin with `name`."""
        return {
            f"{name}_events_per_cpu_second": round(self.events / self.seconds),
            f"{name}_rows": self.rows,
            f"{name}_keys": self.keys,
            f"{name}_bytes_a_key": round(self.state_bytes / max(self.keys, 1), 1),
            f"{name}_bytes_left": self.left_over,
        }


class Buckets:
    """Stored buckets of one process, and the engine that runs over them."""

    def __init__(self, workload: Workload, count: int) -> None:
        self.engine = Engine(workload.process(), page_from=PAGE_FROM)
        self.engine.start()
        self.states: list[bytes | None] = [None] * count
        self.pages: list[bytes | None] = [None] * count
        self.input = self.engine.declaration.input(None)

    def dealt(self, rows: list[Any]) -> list[list[Arrivals]]:
        """One batch per bucket."""
        parts: list[list[Any]] = [[] for _ in self.states]
        for row, key in zip(rows, self.input.arrivals(rows).keys or (), strict=True):
            parts[hash(key) % len(parts)].append(row)
        return [[self.input.arrivals(part)] for part in parts]

    def run(self, batch: list[list[Arrivals]], watermark: int) -> tuple[float, int]:
        """Run a batch over every bucket: CPU seconds, and rows of the main output."""
        began, rows = time.process_time(), 0
        for place, state in enumerate(self.states):
            ran = self.engine.run(state, batch[place], watermark, 0, (), self.pages[place])
            self.states[place], self.pages[place] = ran.state, ran.pages
            rows += len(ran.outputs.main)
        return time.process_time() - began, rows

    def size(self) -> int:
        """Bytes of all buckets."""
        return sum(len(each) for each in [*self.states, *self.pages] if each is not None)

    def keys(self) -> int:
        """Number of keys with state."""
        stored = zip(self.states, self.pages, strict=True)
        return sum(
            len(StoredBucket(state, pages).keys()) for state, pages in stored if state is not None
        )


def measure(workload: Workload, events: int, keys: int, buckets: int, batch: int) -> Result:
    """Run a workload to its end."""
    result = Result()
    stored = Buckets(workload, buckets)
    watermark = newest = BEGINNING

    def run(rows: list[Any], watermark: int) -> None:
        seconds, written = stored.run(stored.dealt(rows), watermark)
        result.seconds += seconds
        result.rows += written
        result.events += len(rows)

    for rows in chunks(workload.events(events, keys), batch):
        run(rows, watermark)
        if stored.size() > result.state_bytes:
            result.state_bytes, result.keys = stored.size(), stored.keys()
        newest = max(newest, max(row.event_time for row in rows))
        watermark = newest - workload.delay
    run([], END_OF_TIME)
    result.left_over = stored.size()
    return result


def touch_one_percent(keys: int, buckets: int) -> dict[str, float]:
    """CPU seconds of batches over 1 % of many open rides, of one over all, and bytes per key.

    The first of them writes the pages.
    """
    stored = Buckets(WORKLOADS["long_rides"], buckets)
    rows = open_rides(keys)
    whole, _ = stored.run(stored.dealt(rows), BEGINNING)
    per_key = stored.size() // keys
    draw = random.Random(7)
    few = []
    for _ in range(TOUCHES):
        batch = stored.dealt([end_of(ride) for ride in draw.sample(rows, keys // 100)])
        few.append(round(stored.run(batch, BEGINNING)[0], 3))
    return {
        "live_keys": keys,
        "live_bytes_a_key": per_key,
        "live_cpu_seconds_of_all": round(whole, 3),
        "live_cpu_seconds_of_1_percent_first": few[0],
        "live_cpu_seconds_of_1_percent": statistics.median(few[1:]),
        "live_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` rows."""
    while part := list(islice(rows, size)):
        yield part


def main() -> None:
    """Measure and report."""
    parser = options_of(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--buckets", type=int, default=128)
    parser.add_argument("--batch", type=int, default=250_000)
    parser.add_argument("--only", choices=list(WORKLOADS), action="append")
    parser.add_argument(
        "--live", type=int, default=0, help="also touch 1 %% of this many live keys"
    )
    parser.add_argument("--repeat", type=int, default=1, help="runs, of which the best is shown")
    options = parser.parse_args()
    figures: dict[str, float] = {}
    for name in options.only or WORKLOADS:
        runs = [
            measure(WORKLOADS[name], options.events, options.keys, options.buckets, options.batch)
            for _ in range(options.repeat)
        ]
        figures |= min(runs, key=lambda each: each.seconds).figures(name)
    if options.live:
        figures |= touch_one_percent(options.live, options.buckets)
    report("process_core", figures, options.out)


if __name__ == "__main__":
    main()
