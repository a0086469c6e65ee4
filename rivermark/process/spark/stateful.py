"""The engine within Spark's stateful operator: a bucket's batch is one state read and one write.

The pages of a large bucket are a state of their own, read once by a worker and written seldom.

Nothing here imports Arrow: before a query's first batch Spark starts a Python process that only
asks which states there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from rivermark.process.engine.stored_form import pages_of
from rivermark.process.errors import DeadLetter, Misuse
from rivermark.process.instants import BEGINNING, Millis
from rivermark.process.spark.buckets import ROWS
from rivermark.process.spark.meter import Metrics

if TYPE_CHECKING:
    from rivermark.process.api.inputs import Arrivals
    from rivermark.process.engine.engine import Timer
    from rivermark.process.spark.core import Core

STATE: Final = "bucket"
PAGES: Final = "pages"
TICK: Final = -1
"""In place of an input's rank: nothing came, but time has passed."""
STATE_SCHEMA: Final = StructType(
    [
        StructField("stored", BinaryType()),
        StructField("wake", LongType()),
        StructField("wake_processing", LongType()),
    ]
)
"""A bucket's state, the Spark timer that is set for it, and when the wall clock makes something due
(both in milliseconds since the epoch)."""
PAGES_SCHEMA: Final = StructType([StructField("stored", BinaryType())])
"""The pages beside which the state of a large bucket is stored."""


class BucketProcessor(StatefulProcessor):
    """Runs a process over a bucket for Spark, which calls it once a bucket and batch.

    Rows come first and timers afterwards. A bucket that got rows got the watermark with them,
    so a timer of Spark's that this watermark has reached is deleted before it fires. One that
    lies earlier than it needs to is left: it wakes the bucket once for nothing, where taking it
    back and setting another costs two round trips a batch.
    """

    def __init__(self, core: Core, *, clock: bool = False) -> None:
        self._loaded: Core | None = core
        self._pickled = b""
        self._clock = clock

    def __getstate__(self) -> dict[str, Any]:
        """The core as bytes of its own, which are read when it is first needed."""
        pickled = self._pickled
        if self._loaded is not None:
            pickled = cloudpickle.dumps(self._loaded)  # type: ignore[no-untyped-call]
        return {"_loaded": None, "_pickled": pickled, "_clock": self._clock}

    @property
    def _core(self) -> Core:
        if self._loaded is None:
            self._loaded = cloudpickle.loads(self._pickled)
        return self._loaded

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the states; a checkpoint of an earlier release gets that of pages with this."""
        self._handle = handle
        self._state = handle.getValueState(STATE, STATE_SCHEMA)
        self._pages = handle.getValueState(PAGES, PAGES_SCHEMA)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Run a batch's events."""
        packets = [(row.input, row.place, bytes(row.payload)) for row in rows if row.input != TICK]
        arrivals, dead = self._core.taken(key[0], packets)
        timers, unread = self._core.timers(packets)
        return self._run(key[0], arrivals, dead + unread, timerValues, timers)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Run what the watermark has made due, for a bucket without events."""
        return self._run(key[0], [], [], timerValues, fired=True)

    def close(self) -> None:
        """Stop the process."""
        if self._loaded is not None:
            self._loaded.stop()

    def _run(
        self,
        label: int,
        arrivals: Sequence[Arrivals],
        dead: list[DeadLetter],
        clocks: Any,
        timers: Sequence[Timer] = (),
        *,
        fired: bool = False,
    ) -> Iterator[Any]:
        state_row = self._state.get()
        stored, wake, wake_processing = (None, None, None) if state_row is None else state_row
        before = None if stored is None else bytes(stored)
        # Spark's watermark is 0 until there is one.
        watermark = clocks.getCurrentWatermarkInMs() or BEGINNING
        now = clocks.getCurrentProcessingTimeInMs()
        due = (wake is not None and wake <= watermark) or (
            wake_processing is not None and wake_processing <= now
        )
        if not (arrivals or dead or timers or due or fired):
            self._tell(Metrics(wakes={label: wake_processing}))
            return iter(())
        identity = None if before is None else pages_of(before)
        pages = None if identity is None else CACHE.get(identity, self._read_pages)
        ran = self._core.engine.run(before, arrivals, watermark, now, timers, pages)
        if ran.wake_at_processing is not None and not self._clock:
            self._check_clock()
        set_now = self._wake(None if fired else wake, ran.wake_at, watermark)
        if ran.state is None:
            if state_row is not None:
                self._state.clear()
        elif ran.state is not before or (set_now, ran.wake_at_processing) != (
            wake,
            wake_processing,
        ):
            self._state.update((ran.state, set_now, ran.wake_at_processing))
        if ran.pages is None:
            if pages is not None:
                self._pages.clear()
        elif ran.pages is not pages:
            self._pages.update((ran.pages,))
        outputs = ran.outputs
        event_count = sum(len(each.rows) for each in arrivals)
        wakes = {label: ran.wake_at_processing}
        sizes = {label: (ran.rows, len(ran.state or b"") + len(ran.pages or b""))}
        self._tell(Metrics(outputs.counters, outputs.gauges, wakes, event_count, sizes))
        ran.outputs.dead.extend(dead)
        rows = self._core.writer.rows(ran.outputs)
        return iter((Packed(rows),) if rows else ())

    def _read_pages(self) -> bytes | None:
        """The pages beside which the state is stored."""
        row = self._pages.get()
        return None if row is None else bytes(row[0])

    def _tell(self, metrics: Metrics) -> None:
        """Let the driver know the process's numbers, and when the clock is to wake the bucket."""
        if not self._clock:
            metrics.wakes.clear()
        if self._core.meter is not None and (metrics.sizes or metrics.wakes):
            self._core.meter.add(metrics)

    def _wake(
        self, before: Millis | None, wanted: Millis | None, watermark: Millis
    ) -> Millis | None:
        """Have Spark wake the bucket by `wanted`; returns for when its timer is set."""
        if before is not None and (wanted is None or wanted < before or before <= watermark):
            self._handle.deleteTimer(before)
            before = None
        if before is None and wanted is not None:
            self._handle.registerTimer(wanted)
            return wanted
        return before

    def _check_clock(self) -> None:
        """Refuse a timer of the wall clock that nothing would wake. The end of a life may wait."""
        declared = self._core.engine.declaration
        if not any(each.ttl and each.ttl.clock == "processing" for each in declared.states):
            raise Misuse(
                f"process '{declared.name}' registered a timer in processing time, and without "
                "input no batch would fire it: declare run_process(..., clock=True)"
            )


class Packed:
    """A row that Spark asks for as a dict: all rows of a bucket, which it need not copy."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def asDict(self, recursive: bool = False) -> dict[str, Any]:
        """The one column."""
        return {ROWS: self._rows}


MOST_BYTES: Final = 512 * 1024 * 1024


class PageCache:
    """The pages that were used last, by their identity: a hash of what is in them.

    So what is here can't be out of date, whichever buckets, batches, attempts and streams a worker
    is given. It holds `most` bytes.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._pages: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, identity: bytes, read: Callable[[], bytes | None]) -> bytes | None:
        """The pages of this identity, by `read` where they are not here."""
        pages = self._pages.get(identity)
        if pages is None:
            pages = read()
            if pages is not None:
                self._keep(identity, pages)
        else:
            self._pages.move_to_end(identity)
        return pages

    def _keep(self, identity: bytes, pages: bytes) -> None:
        self._pages[identity] = pages
        self._bytes += len(pages)
        while self._bytes > self._most:
            self._bytes -= len(self._pages.popitem(last=False)[1])


CACHE: Final = PageCache()
"""That of this process."""
