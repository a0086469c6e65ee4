"""Runs a bucket's batch, in a stream and over a table alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from rivermark.process.api.inputs import Arrivals, key_getter
from rivermark.process.engine.engine import Engine, Timer
from rivermark.process.engine.paging import PAGE_FROM
from rivermark.process.engine.state_size import Limits
from rivermark.process.errors import DeadLetter, Misuse, ProcessError
from rivermark.process.instants import BEGINNING, END_OF_TIME
from rivermark.process.keyed import KeyedProcess
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.meter import Meter
from rivermark.process.spark.reading import InputReader
from rivermark.process.spark.replaying import REPLAYED, TIMERS, again, set_again
from rivermark.process.spark.writing import WireWriter


@dataclass
class Core:
    """The runner of a bucket's batch, in a stream and over a table: readers, engine, writer.

    `labels` are those of the buckets, in their order.
    """

    make: Callable[[], KeyedProcess[Any, Any]]
    limits: Limits
    readers: tuple[InputReader, ...]
    writer: WireWriter
    meter: Meter | None = None
    labels: tuple[int, ...] = ()
    page_from: int = PAGE_FROM
    _engine: Engine[Any, Any] | None = field(default=None, init=False)

    @property
    def engine(self) -> Engine[Any, Any]:
        """The engine, started when it is first needed."""
        if self._engine is None:
            self._engine = Engine(self.make(), self.limits, page_from=self.page_from)
            self._engine.start()
        return self._engine

    def stop(self) -> None:
        """Let the process release what it holds."""
        if self._engine is not None:
            self._engine.stop()
            self._engine = None

    def taken(
        self, label: int, packets: Iterable[tuple[int, int, bytes]]
    ) -> tuple[list[Arrivals], list[DeadLetter]]:
        """Arrivals of a bucket's packets (input, place, payload), in the order they were read."""
        by_input: dict[int, list[bytes]] = {}
        for rank, _, payload in sorted(packets, key=lambda each: each[:2]):
            by_input.setdefault(rank, []).append(payload)
        arrivals, dead = [], []
        by_input.pop(TIMERS, None)
        for rank, payloads in by_input.items():
            reader = self.readers[rank % REPLAYED]
            if rank < REPLAYED:
                of_input, unkeyed = reader.arrivals(payloads)
            else:
                of_input, unkeyed = again(reader, payloads)
            if not (reader.bucketed or reader.spec.broadcast):
                check_keys(reader, of_input, self.labels.index(label), len(self.labels))
            arrivals.append(of_input)
            dead.extend(unkeyed)
        return arrivals, dead

    def timers(
        self, packets: Iterable[tuple[int, int, bytes]]
    ) -> tuple[list[Timer], list[DeadLetter]]:
        """Timers of dead letters that are to be set again; those whose key cannot be read."""
        payloads = [payload for rank, _, payload in packets if rank == TIMERS]
        return set_again(self.engine.declaration, payloads) if payloads else ([], [])


@dataclass
class BucketRun:
    """Runs a bucket of a table to the end of time; for `applyInArrow`."""

    core: Core

    def __call__(self, key: tuple[Any, ...], packets: pa.Table) -> pa.Table:
        """Wire rows of all that the process writes."""
        columns = (packets.column(name).to_pylist() for name in ("input", "place", "payload"))
        # Spark gives keys as Arrow has them: a scalar of it equals no number of Python's.
        label = key[0].as_py()
        arrivals, dead = self.core.taken(label, zip(*columns, strict=True))
        engine = self.core.engine
        now = int(time.time() * 1000)
        bucket = engine.open(None)
        outputs = engine.advance(bucket, arrivals, BEGINNING, now)
        outputs.extend(engine.advance(bucket, [], END_OF_TIME, now))
        outputs.dead.extend(dead)
        self.core.stop()
        rows = pa.array(self.core.writer.rows(outputs), self.core.writer.arrow)
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


SAMPLE: Final = 64
"""How many events of a batch and bucket are looked at, spread over it, the first among them."""


def check_keys(reader: InputReader, arrivals: Arrivals, bucket: int, buckets: int) -> None:
    """Raise ProcessError where the key of an event is not the one that it was sent by."""
    spec = reader.spec
    if spec.key is None or not arrivals.keys:
        return
    get = key_getter(spec.key)
    for place in range(0, len(arrivals.keys), -(-len(arrivals.keys) // SAMPLE)):
        key, event = arrivals.keys[place], arrivals.rows[place]
        try:
            sent = bucket_of(key, buckets)
        except TypeError:
            continue  # of a wrong type, which is reported when it is handled
        if sent != bucket or get(event) != key:
            at = 0 if arrivals.times is None else arrivals.times[place]
            problem = Misuse(
                f"the key of input '{spec.name}' is not deterministic: the worker computes another "
                "one for this event than the task that read it. A key depends on its event alone, "
                "not on the clock, on chance, on hash() or on id(). State of such a key lies in "
                "several buckets: correct the function, then start over with rivermark reset"
            )
            raise ProcessError(reader.process, key, event, at, problem)
