"""Whatever a public declaration is given: it takes it, or raises a DeclarationError.

Each argument in turn gets each of the values; the others are right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from rivermark import (
    Contract,
    Daily,
    DeclarationError,
    Domain,
    Field,
    Ingest,
    Marks,
    Output,
    Plot,
    Rule,
    Stream,
    Suite,
    Table,
    Topology,
    expect,
)
from rivermark.operators import SessionWindow, SlidingWindow, TumblingWindow
from rivermark.quality import no_overlap, not_ahead, usual_rows
from rivermark.restart import FixedDelay, GrowingDelay
from rivermark.sinks import (
    ConsoleSink,
    DeltaUpsert,
    FileSink,
    KafkaSink,
    PostgresAppend,
    PostgresUpsert,
    RealTimeSink,
    WebhookSink,
)
from rivermark.sources import (
    DeltaSource,
    ElementsSource,
    FileSource,
    KafkaSource,
    PostgresSource,
    RateSource,
    SocketSource,
)

MINUTE = timedelta(minutes=1)
AT = Field("at", "timestamp", required=True)
CONTRACT = Contract(fields=(AT,), event_time="at")
TABLE = Table(name="a/b", schema="at timestamp, v double", description="B.", event_time="at")
SOURCE = FileSource(folder="a")
INGEST = Ingest(
    name="a/i", source=SOURCE, contract=CONTRACT, lateness=MINUTE, description="I.", group="a"
)
RIGHT: dict[Callable[..., object], dict[str, Any]] = {
    ConsoleSink: {},
    Contract: {"fields": (AT,), "event_time": "at"},
    Daily: {"column": "at", "start": date(2020, 1, 1)},
    DeltaSource: {"table": "s3://a/b"},
    DeltaUpsert: {"version": "at"},
    Domain: {"group": "a", "first_day": date(2020, 1, 1)},
    ElementsSource: {"elements": ({"id": 1},)},
    Field: {"name": "id", "type": "long"},
    FileSink: {},
    FileSource: {"folder": "a"},
    FixedDelay: {},
    GrowingDelay: {},
    Ingest: {
        "name": "a/i",
        "source": SOURCE,
        "contract": CONTRACT,
        "lateness": MINUTE,
        "description": "I.",
        "group": "a",
    },
    KafkaSink: {"topic": "t"},
    KafkaSource: {"topics": "t"},
    Marks: {"name": "m", "table": TABLE, "start": "at"},
    Output: {"table": TABLE},
    Plot: {"title": "t", "table": TABLE, "x": "at", "y": "v", "kind": "line"},
    PostgresAppend: {"table": "t"},
    PostgresSource: {"table": "t"},
    PostgresUpsert: {"table": "t", "version": "at"},
    RateSource: {},
    RealTimeSink: {"topic": "t"},
    Rule: {"name": "r", "broken": lambda: None, "action": "flag", "description": "R."},
    SessionWindow: {"gap": MINUTE},
    SlidingWindow: {"size": MINUTE, "every": MINUTE},
    SocketSource: {"host": "localhost", "port": 9},
    Stream: {"reads": (INGEST,), "build": lambda rows: rows, "writes": TABLE, "group": "a"},
    Suite: {"expectations": (expect.unique("at"),)},
    Table: {"name": "a/b", "schema": "at timestamp", "description": "B."},
    Topology: {"streams": (INGEST,)},
    TumblingWindow: {"size": MINUTE},
    WebhookSink: {"url": "https://hooks.example/a"},
    expect.between: {"column": "v", "low": 0},
    expect.in_set: {"column": "v", "values": (1, 2)},
    expect.matches_regex: {"column": "v", "pattern": "a+"},
    expect.no_rows_from: {"query": "SELECT * FROM {batch}", "name": "none"},
    expect.no_rows_where: {"condition": "v < 0", "name": "none"},
    expect.not_null: {"column": "v"},
    expect.pair_ordered: {"first": "at", "second": "v"},
    expect.row_count_between: {"low": 1},
    expect.unique: {"columns": ("at", "v")},
    no_overlap: {"keys": "v"},
    not_ahead: {"event_time": "at", "arrived": "landed", "most": MINUTE},
    usual_rows: {"daily": Daily("at", date(2020, 1, 1))},
}
VALUES: list[Any] = [
    *(0, -1, 1.5, float("nan"), 10**30, Decimal(1), True, None, b"x", object(), int, print),
    *("", "two words", "nope", "\x1b[31m"),
    *((), (1,), ("nope",), ("at", "at"), [("a",)], {}, {"a": 1}, {1: 2}, {1}),
    *(-MINUTE, timedelta(0), MINUTE, date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)),
    *(AT, CONTRACT, TABLE, SOURCE, INGEST, Field),
]
NEVER: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (Contract, {"max_ahead": -MINUTE}),
    (Contract, {"max_jump": timedelta(0)}),
    (Contract, {"rules": (Rule("", "false", "flag", "R."),)}),
    (Domain, {"owners": "team:a"}),
    (FileSource, {"pattern": ""}),
    (FileSource, {"settle": -MINUTE}),
    (GrowingDelay, {"factor": float("nan")}),
    (Ingest, {"fresh_within": timedelta(0)}),
    (Ingest, {"personal": ("nope",)}),
    (Ingest, {"quarantine_below": 1.5}),
    (KafkaSink, {"topic": "a b"}),
    (KafkaSink, {"topic": ""}),
    (KafkaSource, {"topics": ("t", "..")}),
    (Marks, {"end": ""}),
    (RateSource, {"rows_per_second": float("nan")}),
    (RealTimeSink, {"topic": "t/u"}),
    (SocketSource, {"host": ""}),
    (SocketSource, {"port": 1 << 16}),
    (Stream, {"fresh_within": -MINUTE}),
    (Stream, {"margin": -MINUTE}),
    (Stream, {"restart": int}),
    (Stream, {"touches": lambda: None}),
    (Table, {"schema": "at timestamp, At timestamp"}),
    (KafkaSource, {"topics": (), "pattern": "("}),
    (Topology, {"plots": [TABLE]}),
    (Topology, {"streams": "a/i"}),
    (expect.between, {"column": 5}),
    (expect.in_set, {"values": 5}),
    (expect.in_set, {"values": "NESW"}),
    (expect.no_rows_where, {"condition": 5}),
    (expect.not_null, {"column": 5}),
    (expect.row_count_between, {"low": "a"}),
    (expect.unique, {"columns": 5}),
    (expect.unique, {"columns": ["at", 5]}),
]


@pytest.mark.parametrize("declare", RIGHT, ids=lambda declare: declare.__name__)
def test_any_value_is_taken_or_refused_by_a_sentence(declare: Callable[..., object]) -> None:
    right = RIGHT[declare]
    declare(**right)
    for name in inspect.signature(declare).parameters:
        for value in VALUES:
            try:
                declare(**right | {name: value})
            except Exception as error:
                text = f"{name}={value!r}: {type(error).__name__}: {error}"
                if not isinstance(error, DeclarationError) or "test_any_value.py, line" not in text:
                    pytest.fail(text)


@pytest.mark.parametrize(("declare", "wrong"), NEVER)
def test_what_could_never_be_meant_is_refused(
    declare: Callable[..., object], wrong: dict[str, Any]
) -> None:
    with pytest.raises(DeclarationError):
        declare(**RIGHT[declare] | wrong)
