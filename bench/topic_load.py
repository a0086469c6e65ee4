"""The load of `bench.topics`: fares on a schedule fixed beforehand, and what should come of them.

    python -m bench.topic_load BROKERS TOPIC BEGAN RATE EVENTS FIRST paced|at-once

Imports no engine: Flink's job, in an environment of its own, takes its names from this module.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

PARTITIONS: Final = 4
DRIVERS: Final = 200
WINDOW_SECONDS: Final = 5
LATENESS_SECONDS: Final = 2
MICROS: Final = 1_000_000
AT_ONCE: Final = 10_000
"""So many are handed to the client between two looks at what it has sent."""

Windows = dict[tuple[int, int], tuple[int, int]]
"""By end (ms since 1970) and driver: the sum of tips, and how many fares."""


@dataclass(frozen=True)
class Phase:
    """Fares from number `first` on, the n-th of them due n / `rate` seconds after `began`.

    `began` is in microseconds since 1970. An event's time is when it is due. With `paced=False`
    all are sent at once, whatever their times.
    """

    began: int
    rate: int
    events: int
    first: int = 0
    paced: bool = True

    @property
    def end(self) -> int:
        """When the next event would be due, in microseconds."""
        return self.began + self.events * MICROS // self.rate

    def due(self) -> Any:
        """When each is due, in microseconds."""
        return self.began + np.arange(self.events) * MICROS // self.rate


def windows_of(phases: Sequence[Phase], closed: int) -> Windows:
    """The windows per driver that end by `closed` (microseconds), from the schedule alone."""
    due = np.concatenate([phase.due() for phase in phases])
    rides = np.concatenate([phase.first + np.arange(phase.events) for phase in phases])
    span = WINDOW_SECONDS * MICROS
    ends = (due // span + 1) * span
    within = ends <= closed
    keys = (ends[within] // 1000) * (DRIVERS + 1) + driver_of(rides[within])
    groups, places = np.unique(keys, return_inverse=True)
    tips = np.bincount(places, weights=tip_of(rides[within]))
    fares = np.bincount(places)
    return {
        (int(key // (DRIVERS + 1)), int(key % (DRIVERS + 1))): (int(sum_of), int(count))
        for key, sum_of, count in zip(groups, tips, fares, strict=True)
    }


def driver_of(ride: Any) -> Any:
    """The driver of a ride, or of many."""
    return 1 + ride % DRIVERS


def tip_of(ride: Any) -> Any:
    """The tip of a ride, or of many."""
    return ride % 7


@lru_cache(maxsize=4)
def second_text(second: int) -> str:
    """A second since 1970 in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def fare_line(ride: int, due: int) -> str:
    """A fare as a JSON line; quicker than an encoder, for the sender must not be what is slow."""
    second, micros = divmod(due, MICROS)
    driver, tip = driver_of(ride), tip_of(ride)
    return (
        f'{{"ride_id":{ride},"taxi_id":{driver},"driver_id":{driver},'
        f'"event_time":"{second_text(second)}.{micros:06d}Z","payment_type":"CARD",'
        f'"tip":{tip},"tolls":0,"total_fare":{9 + tip}}}'
    )


def send(brokers: str, topic: str, phase: Phase) -> None:
    """Send each fare when it is due, late where it must be, but never put off."""
    from confluent_kafka import Producer  # Flink's environment has no such client.

    settings = {"linger.ms": 2, "queue.buffering.max.messages": 2_000_000, "log_level": 0}
    producer = Producer({"bootstrap.servers": brokers, **settings})
    time.sleep(max(phase.began / MICROS - time.time(), 0))
    sent = 0
    while sent < phase.events:
        passed = round(time.time() * MICROS) - phase.began
        ready = passed * phase.rate // MICROS + 1 if phase.paced else phase.events
        ready = min(ready, phase.events, sent + AT_ONCE)
        for n in range(sent, ready):
            ride, due = phase.first + n, phase.began + n * MICROS // phase.rate
            producer.produce(topic, fare_line(ride, due), partition=ride % PARTITIONS)
        if ready == sent:
            time.sleep(0.001)
        sent = ready
        producer.poll(0)
    if unsent := producer.flush(60):
        raise SystemExit(f"{unsent:,} events were not sent")


def main() -> None:
    """Send what the command line says."""
    brokers, topic, began, rate, events, first, pace = sys.argv[1:]
    phase = Phase(int(began), int(rate), int(events), int(first), paced=pace == "paced")
    send(brokers, topic, phase)


if __name__ == "__main__":
    main()
