"""Large buckets in pages: the same results as whole, and a batch costs what it touches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any, ClassVar

import msgspec
import pytest

from rivermark.process import (
    BEGINNING,
    END_OF_TIME,
    TTL,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    Limits,
    ListState,
    MapState,
    ValueState,
)
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.engine.paging import finds_keys
from rivermark.process.engine.stored_form import pages_of
from rivermark.process.engine.stored_state import StoredBucket
from rivermark.process.errors import StateTooLarge, StateUnreadable
from rivermark.process.evolution.storable import Storable
from tests.seeds import seeds
from tests.unit.process.readings import NOON, SECOND, Note, Reading, reading


class Busy(KeyedProcess[Reading, Note]):
    """Uses all kinds of state and timers; values decide what an event does."""

    readings = Input(Reading, key="sensor", time="at")
    hold = False
    rules = Broadcast(Reading, time="at")
    dead_letter = True

    last: ValueState[Reading]
    values: ListState[int]
    counts: MapState[str, int]
    recent: ValueState[int] = ValueState(ttl=TTL(timedelta(seconds=20)))
    shown: ListState[int] = ListState(ttl=TTL(timedelta(seconds=30), clock="processing"))
    limits: BroadcastState[str, int]

    def on_readings(self, event: Reading, ctx: Context[Note]) -> None:
        last = self.last.value
        ctx.emit(Note(f"{ctx.key} {last} {self.recent.value} {[*self.shown]} {ctx.is_late}"))
        action = event.value % 10
        if action == 9:
            return
        if last is not None:
            ctx.timers.event.delete(last.at + 10 * SECOND)
        self.last.value = event
        self.values.append(event.value)
        self.counts[f"n{action}"] = event.value
        ctx.timers.event.register(event.at + 10 * SECOND)
        ctx.timers.event.register(NOON + (event.at // 60_000 + 1) * 60_000 - NOON)
        ctx.timers.processing.register(event.at + 15 * SECOND)
        if action in (1, 2):
            self.recent.value = event.value
            self.shown.append(event.value)
        if action == 3:
            self.last.clear()
            self.values.clear()
            self.counts.clear()
        if action == 4:
            ctx.emit(Note(f"{ctx.key} {ctx.timers.event.list()}"))
        if action == 5:
            raise ValueError("poison")

    def on_rules(self, event: Reading, ctx: Context[Note]) -> None:
        self.limits[event.sensor] = event.value
        if event.value % 2:
            for key in ctx.each_key():
                self.counts[event.sensor] = event.value
                ctx.timers.event.register(event.at + int(key[1:]) * SECOND)
                ctx.count(key)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        ctx.emit(Note(f"{ctx.key} {ctx.timer} {at} {self.last.value}"))
        if at % 3 == 0:
            self.last.clear()
        if at % 7 == 0:
            ctx.timers.event.register(at + 3)


class Held(Busy):
    order = "event_time"
    hold = True


def batches(seed: int) -> Iterator[tuple[list[Arrivals], int, int]]:
    """Batches with their watermark and processing time: many keys, then few in each."""
    draw = random.Random(seed)
    now = NOON
    for number in range(40):
        now += draw.choice([0, 500, 2_000, 9_000])
        count = 700 if number in (0, 25) else draw.choice([0, 1, 2, 5])
        rows = [
            reading(f"s{draw.randrange(500)}", now + draw.randrange(-3_000, 8_000), n)
            for n in (draw.randrange(1_000) for _ in range(count))
        ]
        ruled = [reading("hot", now, number)] if number % 13 == 12 else []
        yield (
            [
                Arrivals("rules", ruled, None, [each.at for each in ruled]),
                Arrivals("readings", rows, [e.sensor for e in rows], [e.at for e in rows]),
            ],
            now - 4_000,
            now + draw.choice([0, -5_000]),
        )


def contents(stored: bytes | None, pages: bytes | None) -> Any:
    """All that is in a bucket, without the order of keys."""
    if stored is None:
        return None
    bucket = StoredBucket(stored, pages)
    keys = sorted(bucket.keys())
    return (
        bucket.watermark,
        [(key, bucket.state_of(key), bucket.timers_of(key)) for key in keys],
        list(bucket.waiting()),
        bucket.broadcasts,
        bucket.timer_count(),
    )


def started(process: KeyedProcess[Any, Any], **options: Any) -> Engine[Any, Any]:
    engine = Engine(process, **options)
    engine.start()
    return engine


@pytest.mark.parametrize("seed", seeds(1, 5))
@pytest.mark.parametrize("process", [Busy, Held])
def test_a_bucket_in_pages_gives_the_rows_and_the_state_of_a_whole_one(
    process: type[Busy], seed: int
) -> None:
    whole, paged = started(process()), started(process(), page_from=1)
    state = stored = pages = None
    in_pages = written = 0
    runs = [*batches(seed), ([], END_OF_TIME, NOON)]
    for number, (batch, watermark, now) in enumerate(runs):
        expected = whole.run(state, batch, watermark, now)
        ran = paged.run(stored, batch, watermark, now, (), pages)
        assert ran.outputs.main == expected.outputs.main
        assert ran.outputs.dead == expected.outputs.dead
        assert ran.outputs.counters == expected.outputs.counters
        assert ran.rows == expected.rows
        if number % 4 == 0:
            assert contents(ran.state, ran.pages) == contents(expected.state, None)
        for early, exact in (
            (ran.wake_at, expected.wake_at),
            (ran.wake_at_processing, expected.wake_at_processing),
        ):
            assert exact is None or (early is not None and early <= exact)
        in_pages += ran.pages is not None
        written += ran.pages is not None and ran.pages is not pages
        state, stored, pages = expected.state, ran.state, ran.pages
    assert in_pages > 10
    assert 1 <= written < in_pages


class Last(KeyedProcess[Reading, Note]):
    """Keeps the last reading; one of value 0 only asks."""

    key = "sensor"
    time = "at"
    hold = False
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        if not event.value:
            ctx.emit(Note(str(self.last.value)))
            return
        self.last.value = event
        ctx.timers.event.register(event.at + 100_000)

    def on_timer(self, at: int, ctx: Context[Note]) -> None:
        self.last.clear()


def arrivals(*rows: Reading) -> list[Arrivals]:
    return [Arrivals("events", [*rows], [each.sensor for each in rows], [each.at for each in rows])]


def in_pages(process: KeyedProcess[Any, Any], keys: int = 2_000) -> tuple[bytes, bytes]:
    """The state of many keys and its pages; timers are due from 100 s after noon on."""
    rows = [reading(f"s{n}", NOON + n, 1) for n in range(keys)]
    engine = started(process, page_from=1)
    first = engine.run(None, arrivals(*rows), BEGINNING, 0)
    ran = engine.run(first.state, arrivals(reading("s7", NOON, 0)), BEGINNING, 0)
    assert first.pages is None
    assert ran.state is not None
    assert ran.pages is not None
    return ran.state, ran.pages


def test_a_batch_opens_and_writes_what_it_touches() -> None:
    stored, pages = in_pages(Last())
    engine = started(Last(), page_from=1)
    bucket = engine.open(stored, pages)
    engine.advance(bucket, arrivals(reading("s5", NOON + 1, 2)), NOON, 0)

    assert list(bucket.records) == bucket.touched == ["s5"]
    assert list(bucket.event.due) == [NOON + 100_001]

    ran = engine.run(stored, arrivals(reading("s5", NOON + 1, 2)), NOON, 0, (), pages)
    assert ran.pages is pages
    assert ran.state is not None
    assert len(ran.state) < len(stored) + 100 < len(pages) // 100
    assert ran.rows == 2_000


def test_what_is_only_read_is_not_written_and_timers_that_are_not_due_are_not_decoded() -> None:
    stored, pages = in_pages(Last())
    engine = started(Last(), page_from=1)
    rows = [reading(f"s{n}", NOON, 0) for n in range(0, 2_000, 20)]

    bucket = engine.open(stored, pages)
    engine.advance(bucket, arrivals(*rows), BEGINNING, 0)
    assert not bucket.event.due

    ran = engine.run(stored, arrivals(*rows), BEGINNING, 0, (), pages)
    assert ran.outputs.main[1] == Note(str(reading("s20", NOON + 20, 1)))
    assert (ran.state, ran.pages) == (stored, pages)
    assert ran.state is stored
    assert ran.wake_at == NOON + 100_000


def test_a_batch_in_which_timers_are_due_decodes_those() -> None:
    stored, pages = in_pages(Last())
    engine = started(Last(), page_from=1)

    ran = engine.run(stored, [], NOON + 100_019, 0, (), pages)

    assert (ran.rows, ran.wake_at) == (1_980, NOON + 100_020)
    assert ran.pages is pages


def test_a_batch_that_touches_much_writes_the_bucket_whole() -> None:
    stored, pages = in_pages(Last())
    rows = [reading(f"s{n}", NOON + n, 2) for n in range(1_000)]

    ran = started(Last(), page_from=1).run(stored, arrivals(*rows), BEGINNING, 0, (), pages)

    assert ran.pages is None
    assert ran.state is not None
    assert pages_of(ran.state) is None
    assert ran.rows == 2_000


def test_a_small_bucket_stays_whole_and_an_empty_one_leaves_nothing() -> None:
    stored, pages = in_pages(Last())
    ran = started(Last(), page_from=1).run(stored, [], END_OF_TIME, 0, (), pages)
    assert (ran.state, ran.pages, ran.rows) == (None, None, 0)

    small = started(Last(), page_from=1_000_000)
    first = small.run(None, arrivals(*(reading(f"s{n}", NOON, 1) for n in range(9))), 0, 0)
    assert small.run(first.state, arrivals(reading("s1", NOON, 2)), 0, 0).pages is None


def test_pages_of_another_state_are_refused() -> None:
    stored, pages = in_pages(Last())
    _, others = in_pages(Last(), 1_999)
    engine = started(Last())

    for wrong in (None, others):
        with pytest.raises(StateUnreadable, match="the state's pages are not those"):
            engine.open(stored, wrong)
        with pytest.raises(StateUnreadable, match="the state's pages are not those"):
            StoredBucket(stored, wrong)
    with pytest.raises(StateUnreadable, match="stored state cannot be read"):
        engine.open(stored[:-1], pages)


def test_the_limit_of_a_bucket_counts_its_pages_and_names_keys_in_them() -> None:
    stored, pages = in_pages(Last())
    limited = started(Last(), limits=Limits(bucket=len(pages)), page_from=1)

    with pytest.raises(StateTooLarge, match=r"a bucket of 2,000 keys .* largest keys: 's"):
        limited.run(stored, arrivals(reading("s5", NOON, 2)), BEGINNING, 0, (), pages)


class Trip(msgspec.Struct):
    sensor: str
    at: int
    value: Decimal


class LaterLast(KeyedProcess[Reading, Note]):
    """The same in a later version: the reading's value has another type."""

    key = "sensor"
    time = "at"
    version = 2
    migrations: ClassVar[dict[str, Any]] = {
        "last": lambda was, _: Trip(was["sensor"], was["at"], Decimal(was["value"]) / 2)
    }
    last: ValueState[Trip]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        ctx.emit(Note(str(self.last.value)))

    def on_timer(self, at: int, ctx: Context[Note]) -> None: ...


def test_a_later_version_takes_over_a_bucket_in_pages() -> None:
    stored, pages = in_pages(Last())
    engine = started(Last(), page_from=1)
    changed = engine.run(stored, arrivals(reading("s5", NOON, 4)), BEGINNING, 0, (), pages)

    later = started(LaterLast(), page_from=1)
    asked = arrivals(reading("s5"), reading("s6"))
    ran = later.run(changed.state, asked, NOON + 100_009, 0, (), changed.pages)

    assert ran.outputs.main == [
        Note(str(Trip("s5", NOON, Decimal(2)))),
        Note(str(Trip("s6", NOON + 6, Decimal("0.5")))),
    ]
    assert ran.rows == 2_000
    assert ran.wake_at == NOON + 100_010
    assert ran.pages is not None
    assert contents(ran.state, ran.pages)[4] == 2_001 - 11


@pytest.mark.parametrize(
    ("of", "paged"),
    [
        (int, True),
        (str, True),
        (tuple[int, bytes], True),
        (Decimal, False),
        (tuple[int, Decimal], False),
    ],
)
def test_only_keys_that_are_stored_alike_where_they_are_equal_lie_in_pages(
    of: Any, paged: bool
) -> None:
    assert finds_keys(Storable(of, "a key").shape) is paged
