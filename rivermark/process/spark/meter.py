"""Reports of workers to the driver beside rows: counters, gauges, sizes, wake-up times.

A Spark accumulator a stream carries it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from rivermark.process.instants import Millis

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.accumulators import Accumulator


@dataclass
class Metrics:
    """Numbers that a process gave: counters are sums, of gauges the largest of all buckets.

    `events` is how many events the bucket was given. `wakes` are the moments of the wall clock (ms)
    at which a bucket, by its label, has something to do; None for one that has nothing. `sizes` are
    a bucket's keys with state and waiting events, by its label, and the bytes that it takes.
    """

    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    wakes: dict[int, Millis | None] = field(default_factory=dict)
    events: int = 0
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)

    def merge(self, other: Metrics) -> Metrics:
        """Add the numbers of another bucket; gives itself."""
        self.events += other.events
        self.wakes |= other.wakes
        self.sizes |= other.sizes
        for name, count in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count
        for name, value in other.gauges.items():
            self.gauges[name] = max(value, self.gauges.get(name, value))
        return self


class _Merged(AccumulatorParam[Metrics]):
    def zero(self, value: Metrics) -> Metrics:
        return Metrics()

    def addInPlace(self, value1: Metrics, value2: Metrics) -> Metrics:
        return value1.merge(value2)


class Meter:
    """Collects what the workers count; the driver takes it after each batch.

    What a failed task counted is not reported. A stage that Spark runs again, because a worker was
    lost with its output, counts again.
    """

    def __init__(self, context: SparkContext) -> None:
        self._reported: Accumulator[Any] = context.accumulator(Metrics(), _Merged())

    def add(self, metrics: Metrics) -> None:
        """Report numbers (on a worker)."""
        self._reported.add(metrics)

    def take(self) -> Metrics:
        """The reports since the last call (on the driver)."""
        metrics: Metrics = self._reported.value
        self._reported.value = Metrics()
        return metrics
