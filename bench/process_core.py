"""Measures the core of process functions alone: events per CPU second, bytes per key, drift.

    python -m bench.process_core                 all workloads, 1 M events over 200,000 keys
    python -m bench.process_core --events 5000000 --only long_rides
    python -m bench.process_core --only long_rides --profile

No Spark: events are dealt to buckets beforehand, as Spark's shuffle would, and only the engine's
runs are timed (process CPU time, including reading and writing every bucket's state).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import random
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bench.process_workloads import WORKLOADS, Workload
from rivermark.process import BEGINNING, END_OF_TIME, Arrivals, Engine, Ran


@dataclass
class Measured:
    """What a workload came to; bytes are those of all buckets at their largest."""

    events: int = 0
    seconds: float = 0.0
    rows: int = 0
    state_bytes: int = 0
    keys: int = 0
    left_over: int = 0


class Buckets:
    """Stored buckets of one process, and the engine that runs over them."""

    def __init__(self, workload: Workload, count: int) -> None:
        self.engine = Engine(workload.process())
        self.engine.start()
        self.states: list[bytes | None] = [None] * count
        self.input = self.engine.declaration.input(None)

    def dealt(self, rows: list[Any]) -> list[list[Arrivals]]:
        """One batch per bucket."""
        parts: list[list[Any]] = [[] for _ in self.states]
        for row, key in zip(rows, self.input.arrivals(rows).keys or (), strict=True):
            parts[hash(key) % len(parts)].append(row)
        return [[self.input.arrivals(part)] for part in parts]

    def run(self, batch: list[list[Arrivals]], watermark: int) -> Iterator[Ran]:
        """Run a batch over every bucket that has events or state."""
        for place, state in enumerate(self.states):
            ran = self.engine.run(state, batch[place], watermark, 0)
            self.states[place] = ran.state
            yield ran

    def size(self) -> int:
        """Bytes of all buckets."""
        return sum(len(each) for each in self.states if each is not None)

    def keys(self) -> int:
        """Number of keys with state."""
        return sum(len(self.engine.open(each).records) for each in self.states if each is not None)


def measure(workload: Workload, events: int, keys: int, buckets: int, batch: int) -> Measured:
    """Run a workload to its end."""
    found = Measured()
    stored = Buckets(workload, buckets)
    watermark = newest = BEGINNING
    for rows in chunks(workload.events(events, keys), batch):
        dealt = stored.dealt(rows)
        began = time.process_time()
        found.rows += sum(len(ran.outputs.main) for ran in stored.run(dealt, watermark))
        found.seconds += time.process_time() - began
        found.events += len(rows)
        if stored.size() > found.state_bytes:
            found.state_bytes, found.keys = stored.size(), stored.keys()
        newest = max(newest, *map(workload.time_of, rows))
        watermark = newest - workload.delay
    nothing: list[list[Arrivals]] = [[] for _ in stored.states]
    began = time.process_time()
    found.rows += sum(len(ran.outputs.main) for ran in stored.run(nothing, END_OF_TIME))
    found.seconds += time.process_time() - began
    found.left_over = stored.size()
    return found


def touch_one_percent(workload: Workload, keys: int, buckets: int) -> tuple[float, float, int]:
    """CPU seconds of a batch over 1 % of many live keys, of one over all, and bytes per key."""
    stored = Buckets(workload, buckets)
    rows = workload.open_keys(keys)
    whole = seconds_of(stored, stored.dealt(rows))
    per_key = stored.size() // keys
    chosen = random.Random(7).sample(rows, keys // 100)
    few = seconds_of(stored, stored.dealt([workload.again(each) for each in chosen]))
    return few, whole, per_key


def seconds_of(stored: Buckets, batch: list[list[Arrivals]]) -> float:
    """CPU seconds of a batch."""
    began = time.process_time()
    for _ in stored.run(batch, BEGINNING):
        pass
    return time.process_time() - began


def chunks(rows: Iterator[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` rows."""
    part: list[Any] = []
    for row in rows:
        part.append(row)
        if len(part) == size:
            yield part
            part = []
    if part:
        yield part


def main() -> None:
    """Measure and print one line a workload."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=200_000)
    parser.add_argument("--buckets", type=int, default=128)
    parser.add_argument("--batch", type=int, default=250_000)
    parser.add_argument("--only", choices=list(WORKLOADS), action="append")
    parser.add_argument(
        "--live", type=int, default=0, help="also touch 1 %% of this many live keys"
    )
    parser.add_argument("--repeat", type=int, default=1, help="runs, of which the best is shown")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    print(f"{'workload':<26}{'events/CPU-s':>14}{'rows':>9}{'keys':>9}{'bytes/key':>11}{'left':>6}")
    for name in chosen.only or WORKLOADS:
        profile = cProfile.Profile()
        if chosen.profile:
            profile.enable()
        runs = [
            measure(WORKLOADS[name], chosen.events, chosen.keys, chosen.buckets, chosen.batch)
            for _ in range(chosen.repeat)
        ]
        found = min(runs, key=lambda each: each.seconds)
        profile.disable()
        per_key = found.state_bytes / max(found.keys, 1)
        print(
            f"{name:<26}{found.events / found.seconds:>14,.0f}{found.rows:>9,}{found.keys:>9,}"
            f"{per_key:>11.1f}{found.left_over:>6}"
        )
        if chosen.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(16)
    if chosen.live:
        few, whole, per_key_bytes = touch_one_percent(
            WORKLOADS["long_rides"], chosen.live, chosen.buckets
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(
            f"{chosen.live:,} live keys: {per_key_bytes} bytes a key; a batch over all of them "
            f"{whole:.2f} CPU-s, over 1 % {few:.3f} CPU-s; peak {peak:,} MB"
        )


if __name__ == "__main__":
    main()
