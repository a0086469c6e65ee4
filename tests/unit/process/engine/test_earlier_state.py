"""State that an earlier release stored is read by this one.

The bytes in tests/data/process_state were written by the code of commit a55bf76 with the process
and the events below: a bucket with every kind of state, lives on both clocks, timers of both kinds,
broadcast state, and events that wait for the watermark. Those in layout_2 are that bucket in pages,
and the changes of one event.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec

from rivermark.process import (
    TTL,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    ListState,
    MapState,
    ValueState,
)
from rivermark.process.api.inputs import Arrivals
from rivermark.process.engine.engine import Engine
from rivermark.process.engine.stored_state import StoredBucket

STORED: Final = Path(__file__).parents[3] / "data" / "process_state" / "layout_1.msgpack"
PAGED: Final = STORED.parent / "layout_2"
NOON: Final = 1_577_880_000_000
SECOND: Final = 1_000


class Reading(msgspec.Struct, frozen=True):
    sensor: str
    at: int
    value: int = 0


class Cost(msgspec.Struct, frozen=True, array_like=True):
    money: Decimal
    id: UUID
    since: datetime


class Alert(msgspec.Struct, frozen=True):
    text: str


class Everything(KeyedProcess[Reading, Alert]):
    readings = Input(Reading, key="sensor", time="at")
    rules = Broadcast(Reading, time="at")
    order = "event_time"
    hold = True

    last: ValueState[Reading]
    cost: ValueState[Cost]
    values: ListState[tuple[int, str]]
    by_value: MapState[int, Cost | None]
    recent: ValueState[int] = ValueState(ttl=TTL(timedelta(minutes=1)))
    once: MapState[str, int] = MapState(ttl=TTL(timedelta(minutes=2)))
    shown: ListState[int] = ListState(ttl=TTL(timedelta(minutes=3), clock="processing"))
    limits: BroadcastState[str, int]

    def on_readings(self, event: Reading, ctx: Context[Alert]) -> None:
        cost = Cost(Decimal("1.20"), UUID(int=event.value), datetime(2020, 1, 1, tzinfo=UTC))
        self.last.value = event
        self.cost.value = cost
        self.values.append((event.value, event.sensor))
        self.by_value[event.value] = cost if event.value % 2 else None
        self.recent.value = event.value
        self.once[f"n{event.value}"] = event.value
        self.shown.append(event.value)
        for wait in range(1, 4):
            ctx.timers.event.register(event.at + wait * 10 * SECOND)
        ctx.timers.processing.register(5_000)
        if event.value > self.limits.get("hot", 99):
            ctx.emit(Alert(f"{event.sensor} v{self.limits.version}"))

    def on_rules(self, event: Reading, ctx: Context[Alert]) -> None:
        self.limits[event.sensor] = event.value

    def on_timer(self, at: int, ctx: Context[Alert]) -> None:
        ctx.emit(Alert(f"{ctx.key} {ctx.timer} {at} {self.recent.value} {[*self.once]}"))


def store(engine: Engine[Reading, Alert]) -> bytes:
    """The bucket that was stored: two batches, the last events of which wait."""
    rules = [Reading("hot", NOON - 2, 30), Reading("cold", NOON - 1, -5)]
    rows = [Reading(f"s{n % 12:02}", NOON + n * SECOND, n) for n in range(24)]
    waiting = [Reading("s99", NOON + 40 * SECOND, 31), Reading("s01", NOON + 50 * SECOND, 3)]
    batch = [
        Arrivals("rules", rules, None, [each.at for each in rules]),
        *(
            Arrivals("readings", part, [e.sensor for e in part], [e.at for e in part])
            for part in (rows, waiting)
        ),
    ]
    first = engine.run(None, batch, NOON - 3, 1_000).state
    stored = engine.run(first, [], NOON + 23 * SECOND, 2_000).state
    assert stored is not None
    return stored


def started() -> Engine[Reading, Alert]:
    engine = Engine(Everything())
    engine.start()
    return engine


def test_the_bucket_of_an_earlier_release_is_what_is_stored_today() -> None:
    assert store(started()) == STORED.read_bytes()


def test_a_run_goes_on_from_the_bucket_of_an_earlier_release() -> None:
    engine = started()
    after = engine.run(STORED.read_bytes(), [], NOON + 60 * SECOND, 6_000)
    texts = [each.text for each in after.outputs.main]

    assert len(texts) == 72
    assert texts[11:14] == [
        "s11 processing 5000 23 ['n11', 'n23']",
        f"s04 event {NOON + 24 * SECOND} 16 ['n4', 'n16']",
        f"s02 event {NOON + 24 * SECOND} 14 ['n2', 'n14']",
    ]
    assert texts.index("s99 v2") == 48
    assert texts[-4:] == [
        f"s99 event {NOON + 60 * SECOND} 31 ['n31']",
        f"s01 event {NOON + 60 * SECOND} 3 ['n1', 'n13', 'n3']",
        "s99 processing 5000 31 ['n31']",
        "s01 processing 5000 3 ['n1', 'n13', 'n3']",
    ]
    assert (after.rows, after.wake_at, after.wake_at_processing) == (
        13,
        NOON + 61 * SECOND,
        182_000,
    )


def test_the_bucket_of_an_earlier_release_becomes_one_in_pages() -> None:
    whole, paged = started(), Engine(Everything(), page_from=1)
    paged.start()
    state = STORED.read_bytes()
    expected = whole.run(state, [], NOON + 23 * SECOND, 2_001)
    ran = paged.run(state, [], NOON + 23 * SECOND, 2_001)
    assert ran.pages is not None
    assert ran.rows == expected.rows

    for seconds in (24, 41, 60, 200):
        after = whole.run(expected.state, [], NOON + seconds * SECOND, seconds * SECOND)
        ran = paged.run(ran.state, [], NOON + seconds * SECOND, seconds * SECOND, (), ran.pages)
        assert ran.outputs.main == after.outputs.main
        expected = after
    assert ran.rows == expected.rows


def test_a_bucket_in_pages_of_an_earlier_release_is_what_is_stored_today() -> None:
    engine = Engine(Everything(), page_from=1)
    engine.start()
    first = engine.run(STORED.read_bytes(), [], NOON + 23 * SECOND, 2_001)
    row = Reading("z", NOON + 23 * SECOND, 40)
    batch = [Arrivals("readings", [row], [row.sensor], [row.at])]
    ran = engine.run(first.state, batch, NOON + 23 * SECOND, 2_002, (), first.pages)

    changes, pages = ((PAGED / f"{n}.msgpack").read_bytes() for n in ("changes", "pages"))
    assert (ran.state, ran.pages) == (changes, pages)
    assert StoredBucket(changes, pages).state_of("z")["values"] == [[40, "z"]]
