"""Rows to packets to events to rows: the way through Python, without an engine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Table
from rivermark.process import Context, KeyedProcess, Limits, Misuse, ProcessError, ValueState
from rivermark.process.spark.buckets import ROWS
from rivermark.process.spark.core import Core
from rivermark.process.spark.packing import Packer
from rivermark.process.spark.reading import ORDER, InputReader, reader_for
from rivermark.process.spark.stateful import BucketProcessor
from rivermark.process.spark.writing import DEAD, DEAD_LETTER_SCHEMA, MAIN, writer_for
from tests.unit.process.spark.kept_bucket import KeptBucket

LABELS = (10, 20, 30, 40)
T0 = 1_700_000_000_000
NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Event(msgspec.Struct, frozen=True):
    """One field of each kind."""

    key: int
    at: int
    seen: datetime
    price: Decimal
    day: date
    color: Color
    tags: list[str]
    share: float | None = None
    extra: int = 7


class Copy(msgspec.Struct, frozen=True):
    key: int
    at: int
    seen: datetime
    price: Decimal
    day: date
    color: Color
    tags: list[str]
    share: float | None


class Copies(KeyedProcess[Event, Copy]):
    """Gives back what it reads, and raises where the share is negative."""

    key = "key"
    time = "at"
    dead_letter = True
    count: ValueState[int]

    def on_event(self, event: Event, ctx: Context[Copy]) -> None:
        if event.share is not None and event.share < 0:
            raise ValueError("a negative share")
        self.count.value = (self.count.value or 0) + 1
        names = Copy.__struct_fields__
        ctx.emit(Copy(*(getattr(event, name) for name in names)))


COLUMNS = StructType(
    [
        StructField("key", IntegerType()),
        StructField("at", TimestampType()),
        StructField("seen", TimestampType()),
        StructField("price", DecimalType(9, 2)),
        StructField("day", DateType()),
        StructField("color", StringType()),
        StructField("tags", ArrayType(StringType())),
        StructField("share", DoubleType()),
        StructField("_ingest_batch", LongType()),
    ]
)


def reader(
    process: type[KeyedProcess[Any, Any]] = Copies, columns: StructType = COLUMNS
) -> InputReader:
    declared = process.declaration
    spec = declared.inputs[0]
    return reader_for(declared.name, spec, 0, columns, dead_letter=declared.dead_letter)


def batch(rows: list[tuple[Any, ...]], taken: InputReader | None = None) -> pa.RecordBatch:
    """What Spark would send: each row's fields, its order and its bucket."""
    taken = taken or reader()
    names = [*taken.schema.names, "_bucket"]
    types = [*taken.schema.types, pa.int16()]
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def row(key: int | None, at: int = T0, order: int = 0, **more: Any) -> tuple[Any, ...]:
    values: dict[str, Any] = {
        "seen": 1_709_294_400_000_001, "price": Decimal("12.50"), "day": date(2024, 3, 1),
        "color": "blue", "tags": ["a", "b"], "share": 0.5,
    }  # fmt: skip
    values |= more
    return (key, at, *values.values(), order, (key or 0) % len(LABELS))


def packets(*batches: pa.RecordBatch, taken: InputReader | None = None) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for packed in Packer(taken or reader(), LABELS)(iter(batches)):
        for each in packed.to_pylist():
            found.setdefault(each["bucket"], []).append(
                (each["input"], each["place"], each["payload"])
            )
    return found


def core(process: type[KeyedProcess[Any, Any]] = Copies) -> Core:
    table = Table(
        name="test/copies",
        schema=StructType([*COLUMNS.fields[:-1]]),
        description="Copies.",
        event_time="at",
    )
    dead = Table(name="test/dead", schema=DEAD_LETTER_SCHEMA, description="Failed.")
    tables = {MAIN: table} | ({DEAD: dead} if process.declaration.dead_letter else {})
    writer, _ = writer_for(process.declaration, tables)
    return Core(process, Limits(), (reader(process),), writer, labels=LABELS)


def test_every_kind_of_field_comes_through_and_back() -> None:
    (mine,) = packets(batch([row(5, seen=1_709_294_400_000_001)])).values()
    taken = core()
    (arrivals,), dead = taken.taken(LABELS[0], mine)

    assert dead == []
    assert arrivals.rows == [
        Event(5, T0, NOON.replace(microsecond=1), Decimal("12.50"), date(2024, 3, 1), Color.BLUE,
              ["a", "b"], 0.5, 7)
    ]  # fmt: skip
    assert (arrivals.keys, arrivals.times) == ([5], [T0])

    ran = taken.engine.run(None, [arrivals], 0, 0)
    (wire,) = taken.writer.rows(ran.outputs)
    told = dict(zip(taken.writer.schema.names, wire, strict=True))
    assert told["_tag"] == MAIN
    assert (told["key"], told["at"], told["seen"]) == (5, T0 * 1000, 1_709_294_400_000_001)
    assert (told["price"], told["color"], told["tags"]) == ("12.50", "blue", ["a", "b"])
    assert told["error"] is None
    # Arrow takes the wire rows as they are.
    assert pa.array([wire], taken.writer.arrow).to_pylist()[0]["day"] == date(2024, 3, 1)


def test_rows_are_dealt_to_their_buckets_and_come_in_order_of_arrival() -> None:
    first = batch([row(1, T0 + 3, 2), row(2, T0, 1), row(1, T0 + 1, 1)])
    second = batch([row(1, T0 + 2, 1), row(5, T0 + 9, 0)])
    found = packets(first, second)

    assert set(found) == {LABELS[1], LABELS[2]}
    (arrivals,), _ = core().taken(LABELS[1], reversed(found[LABELS[1]]))
    assert arrivals.keys == [5, 1, 1, 1]
    assert arrivals.times == [T0 + 9, T0 + 1, T0 + 2, T0 + 3]


def test_a_key_that_only_python_knows_has_its_bucket_all_the_same() -> None:
    class ByColor(Copies):
        key = staticmethod(color_of)  # type: ignore[assignment]

    taken = reader(ByColor)
    assert not taken.bucketed
    rows = [row(1, color="red"), row(2, color="blue"), row(3, color="red")]
    found = packets(batch(rows, taken), taken=taken)

    keys = [
        arrivals.keys or []
        for label, mine in found.items()
        for arrivals in core(ByColor).taken(label, mine)[0]
    ]
    assert sorted(key for mine in keys for key in mine) == ["blue", "red", "red"]
    assert len(keys) == len({key for mine in keys for key in mine})


def color_of(event: Event) -> str:
    return event.color.value


def test_a_hole_where_a_value_must_be_is_a_dead_letter_or_an_error_that_names_the_field() -> None:
    rows = [row(4, price=None), row(4, share=None), row(4, share=-1.0), row(None)]
    (mine,) = packets(batch(rows)).values()
    taken = core()
    arrivals, dead = taken.taken(LABELS[0], mine)
    ran = taken.engine.run(None, arrivals, 0, 0)
    ran.outputs.dead.extend(dead)

    told = [
        dict(zip(taken.writer.schema.names, wire, strict=True))
        for wire in taken.writer.rows(ran.outputs)
    ]
    assert [each["share"] for each in told if each["_tag"] == MAIN] == [None]
    messages = {each["message"]: each for each in told if each["_tag"] == DEAD}
    assert set(messages) == {
        "its field 'price' is empty and may not be", "a negative share", "the event has no key",
    }  # fmt: skip
    assert '"price":null' in messages["its field 'price' is empty and may not be"]["event_json"]

    class Strict(Copies):
        dead_letter = False

    with pytest.raises(ProcessError, match="field 'price' is empty"):
        core(Strict).taken(LABELS[0], mine)


def test_a_row_with_a_value_of_another_type_is_told_before_it_reaches_spark() -> None:
    taken = core()
    outputs = taken.engine.run(None, [], 0, 0).outputs
    good = Copy(1, T0, NOON, Decimal(1), date(2024, 3, 1), Color.RED, ["a"], None)
    outputs.main.append(good)
    assert len(taken.writer.rows(outputs)) == 1

    for field, wrong, holds in (
        ("price", "1.5", "Decimal"), ("key", None, "int"), ("share", "x", "NoneType, float, int"),
        ("day", NOON.isoformat(), "date"),
    ):  # fmt: skip
        outputs.main[:] = [good, msgspec.structs.replace(good, **{field: wrong})]
        with pytest.raises(Misuse, match=f"in its field '{field}', which holds {holds}: Copy"):
            taken.writer.rows(outputs)


class Tick(msgspec.Struct, frozen=True):
    key: int
    at: int
    until: int


class Waits(KeyedProcess[Tick, Tick]):
    """Emits each event at its `until`; a past one at once."""

    key = "key"
    time = "at"
    hold = False
    last: ValueState[Tick]

    def on_event(self, event: Tick, ctx: Context[Tick]) -> None:
        last = self.last.value
        if last is not None:
            ctx.timers.event.delete(last.until)
        self.last.value = event
        ctx.timers.event.register(event.until)

    def on_timer(self, at: int, ctx: Context[Tick]) -> None:
        last = self.last.value
        assert last is not None
        self.last.clear()
        ctx.emit(last)


TICKS = StructType([StructField(name, LongType()) for name in ("key", "at", "until")])


class Batches:
    """Runs a bucket's batches as Spark would: rows first, then the timers that are due."""

    def __init__(self) -> None:
        self.handle = KeptBucket()
        self.reader = reader(Waits, TICKS)
        writer, _ = writer_for(
            Waits.declaration, {MAIN: Table(name="test/t", schema=TICKS, description="Ticks.")}
        )
        self.processor = BucketProcessor(Core(Waits, Limits(), (self.reader,), writer))
        self.processor.init(self.handle)  # type: ignore[arg-type]

    def run(self, watermark: int, *ticks: Tick) -> list[int]:
        """The keys of the rows that a batch gives."""
        handle = self.handle
        handle.watermark = watermark
        handle.calls.clear()
        told = list(self.processor.handleInputRows((1,), self.rows(ticks), handle)) if ticks else []
        for at in sorted(each for each in handle.timers if each <= watermark):
            told += self.processor.handleExpiredTimer(
                key=(1,), timerValues=handle, expiredTimerInfo=None
            )
            handle.timers.discard(at)
        return [values[1] for packed in told for values in packed.asDict()[ROWS]]

    def rows(self, ticks: tuple[Tick, ...]) -> Iterator[Any]:
        columns = [[t.key for t in ticks], [t.at for t in ticks], [t.until for t in ticks]]
        columns.append([0] * len(ticks))
        packet = pa.RecordBatch.from_arrays(
            [pa.array(each, pa.int64()) for each in columns], schema=self.reader.schema
        )
        assert ORDER in packet.schema.names
        payload = packet.serialize().to_pybytes()
        yield msgspec.defstruct("Row", ["input", "place", "payload"])(0, 0, payload)


def test_one_timer_a_bucket_wakes_it_and_nothing_is_left_in_the_end() -> None:
    bucket = Batches()
    assert bucket.run(0, Tick(1, 10, 100), Tick(2, 11, 50), Tick(3, 12, 70)) == []
    assert bucket.handle.timers == {50}
    assert bucket.handle.calls == ["get", "register", "update"]

    assert bucket.run(60) == [2]
    assert bucket.handle.timers == {70}
    assert bucket.run(80, Tick(4, 90, 95)) == [3]
    assert bucket.handle.timers == {95}
    assert bucket.handle.calls == ["get", "delete", "register", "update"]
    assert bucket.run(100) == [4, 1]
    assert bucket.handle.timers == set()
    assert bucket.handle.value is None


def test_an_early_timer_is_left_and_wakes_the_bucket_once_for_nothing() -> None:
    bucket = Batches()
    bucket.run(0, Tick(1, 10, 50))
    bucket.run(20, Tick(1, 30, 80))
    assert bucket.handle.calls == ["get", "update"]
    assert bucket.handle.timers == {50}

    assert bucket.run(50) == []
    assert bucket.handle.timers == {80}
    assert bucket.run(60, Tick(2, 65, 70)) == []
    assert bucket.handle.timers == {70}
    assert bucket.run(70) == [2]
    assert bucket.run(80) == [1]
    assert (bucket.handle.timers, bucket.handle.value) == (set(), None)


def test_the_process_that_asks_for_the_states_needs_no_arrow(tmp_path: Path) -> None:
    """Spark starts one before the first batch of each query, and waits for it."""
    file = tmp_path / "processor"
    file.write_bytes(cloudpickle.dumps(Batches().processor))  # type: ignore[no-untyped-call]
    asking = f"""
import sys
from pyspark import cloudpickle
class Handle:
    def getValueState(self, name, schema):
        print(name)
processor = cloudpickle.loads(open({str(file)!r}, "rb").read())
processor.init(Handle())
print("pyarrow" in sys.modules, "numpy" in sys.modules)
processor.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", asking], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.split() == ["bucket", "pages", "False", "False"]


def test_a_pickled_processor_runs_as_the_one_it_was_made_from() -> None:
    batches = Batches()
    copied = cloudpickle.loads(cloudpickle.dumps(batches.processor))  # type: ignore[no-untyped-call]
    batches.processor = cloudpickle.loads(cloudpickle.dumps(copied))  # type: ignore[no-untyped-call]
    batches.processor.init(batches.handle)  # type: ignore[arg-type]

    assert batches.run(0, Tick(1, 5, 10)) == []
    assert batches.run(10) == [1]
