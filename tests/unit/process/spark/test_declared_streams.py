"""What a stream refuses of a process function when it is declared, without an engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from pyspark.sql.types import (
    BooleanType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Output, Stream, Table
from rivermark.model.errors import DeclarationError
from rivermark.process import Context, Input, KeyedProcess, SideOutput, ValueState
from rivermark.process.spark import main_rows, run_process, side_rows
from rivermark.process.spark.buckets import bucket_labels, bucket_of, murmur3


class Event(msgspec.Struct, frozen=True):
    key: int
    at: int


class Found(msgspec.Struct, frozen=True):
    key: int
    at: int


class Plain(KeyedProcess[Event, Found]):
    key = "key"
    time = "at"
    seen: ValueState[int]

    def on_event(self, event: Event, ctx: Context[Found]) -> None:
        ctx.emit(Found(event.key, event.at))


class Sided(Plain):
    odd = SideOutput("odd", Found)


class Paired(KeyedProcess[Event, Found]):
    left = Input(Event, key="key", time="at")
    right = Input(Event, key="key", time="at")
    seen: ValueState[int]

    def on_left(self, event: Event, ctx: Context[Found]) -> None: ...

    def on_right(self, event: Event, ctx: Context[Found]) -> None: ...


KEY = StructField("key", LongType())
AT = StructField("at", TimestampType())


def table(name: str, *columns: StructField) -> Table:
    schema = StructType([*columns])
    return Table(name=f"test/{name}", schema=schema, description="A table.", event_time="at")


EVENTS = table("events", KEY, AT)
FOUND = table("found", KEY, AT)


def stream(build: Any, **changes: Any) -> Stream:

    declared: dict[str, Any] = {
        "name": "test/stream",
        "reads": (EVENTS,),
        "build": build,
        "writes": FOUND,
        "lateness": timedelta(minutes=1),
        "description": "A stream.",
        "group": "test",
    }
    return Stream(**(declared | changes))


def test_a_process_with_one_output_needs_no_more_than_its_table() -> None:
    declared = stream(run_process(Plain))

    assert replace(declared, description="Another.").build == declared.build


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reads": (table("events", AT),)}, "a field 'key' and the rows no such column"),
        (
            {"reads": (table("events", StructField("key", StringType()), AT),)},
            r"field 'key' \(int\) cannot hold .* column 'key' has \(string\)",
        ),
        (
            {"writes": table("found", KEY, AT, StructField("more", LongType()))},
            "a column 'more', and its rows .* no such field",
        ),
        (
            {"writes": table("found", StructField("key", BooleanType()), AT)},
            "field 'key' of Found does not fit column 'key'",
        ),
        ({"reads": (EVENTS, EVENTS)}, "has the inputs events, and the stream reads 2"),
        ({"writes": (Output(FOUND, side_rows("odd")),)}, "has no output 'odd'"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=message) as refused:
        stream(run_process(Plain), **changes)
    assert str(refused.value).startswith("stream 'test/stream': process 'Plain'")


def test_every_output_goes_to_a_table() -> None:
    with pytest.raises(DeclarationError, match="say of each table which rows it takes"):
        stream(run_process(Sided))
    with pytest.raises(DeclarationError, match="its output 'odd' goes to no table"):
        stream(run_process(Sided), writes=(Output(FOUND, main_rows),))
    odd = Output(table("odd", KEY, AT), side_rows("odd"))
    assert stream(run_process(Sided), writes=(Output(FOUND, main_rows), odd)).tables[0] is FOUND
    other = Output(table("odd", StructField("key", StringType()), AT), side_rows("odd"))
    with pytest.raises(DeclarationError, match="columns 'key' of different types"):
        stream(run_process(Sided), writes=(Output(FOUND, main_rows), other))


def test_several_inputs_are_named_in_the_order_of_reads() -> None:
    with pytest.raises(DeclarationError, match="has the inputs left, right: name each once"):
        run_process(Paired)
    with pytest.raises(DeclarationError, match="has no input 'middle'"):
        run_process(Paired, inputs=("right", "left"), prepare={"middle": lambda rows: rows})


def test_an_input_that_may_be_idle_does_not_hold_the_watermark_back() -> None:
    build = run_process(Paired, inputs=("right", "left"), idle=("left",))

    assert [build.leads(place) for place in (0, 1)] == [True, False]
    assert run_process(Plain).leads(0)


def test_an_unbound_build_says_what_it_needs() -> None:
    with pytest.raises(DeclarationError, match="not bound to tables"):
        run_process(Plain)(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(("buckets", "partitions"), [(1, 1), (1, 2), (32, 2), (32, 3), (7, 4)])
def test_labels_spread_buckets_evenly_over_partitions(buckets: int, partitions: int) -> None:
    labels = bucket_labels(buckets, partitions)

    places = [murmur3(label) % partitions for label in labels]
    assert len(set(labels)) == buckets
    assert places == [bucket % partitions for bucket in range(buckets)]


def test_hashes_are_those_of_spark_and_the_same_in_every_process() -> None:
    # SELECT hash(0), hash(1) in Spark
    assert [murmur3(0), murmur3(1)] == [933211791, -559580957]
    assert bucket_of(("a", 1), 32) == bucket_of(("a", 1), 32)
    assert {bucket_of(n, 8) for n in range(100)} == set(range(8))
