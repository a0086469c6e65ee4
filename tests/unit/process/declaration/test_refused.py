"""What a process class, its build, a reader or an expectation refuses with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from types import new_class
from typing import Any

import msgspec
import pytest

from rivermark import DeclarationError, Table, expect, readers
from rivermark.process import KeyedProcess, Millis, ValueState
from rivermark.process.patterns import Pattern
from rivermark.process.spark import run_process
from tests.oracles.cafe import sales


class Order(msgspec.Struct, frozen=True):
    order_id: int
    at: Millis


ORDERS = Table.of(Order, name="cafe/copies", description="Orders again.", event_time="at")


def process(out: type = Order, **attributes: Any) -> Any:
    """A process of orders with other attributes."""
    declared = {"key": "order_id", "time": "at", "on_event": lambda self, event, ctx: None}
    body = declared | attributes
    return new_class("Copies", (KeyedProcess[Order, out],), exec_body=lambda ns: ns.update(body))  # type: ignore[valid-type]


def build(make: Any, **more: Any) -> object:
    return sales(build=run_process(make, **more), writes=ORDERS, margin=timedelta(0))


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: process(on_event=lambda self, event: None), "on_event(self, event) is called with"),
    (lambda: process(on_event=5), "on_event is 5; write a method"),
    (lambda: process(on_timer=lambda self: None), "on_timer(self) is called with (self, at, ctx)"),
    (lambda: process(key=5), "the key function is 5: name a field"),
    (lambda: process(time=5), "the time function is 5: name a field"),
    (lambda: process(dead_letter="yes"), "dead_letter must be True or False, not 'yes'"),
    (
        lambda: process(__annotations__={"n": ValueState[int]}, n=ValueState(ttl=5)),  # type: ignore[arg-type]
        "state 'n': its ttl is 5; write TTL(",
    ),
    (lambda: build(process(out=int)), "rows of table 'cafe/copies' are int"),
    (lambda: build(process(__init__=lambda self, limit: None)), "missing 1 required positional"),
    (lambda: build("Copies"), "run_process takes a process class"),
    (lambda: build(process()()), "and not an object of it: run_process("),
    (lambda: process(version="two"), "version must be a whole number from 1"),
    (lambda: build(dict), "dict() makes a dict and not a process"),
    (lambda: build(process(), buckets="8"), "`buckets` is the text '8'"),
    (lambda: build(process(), prepare="rides"), "`prepare` takes functions"),
    (lambda: Pattern.begin("small", "amount < 1"), "its condition is 'amount < 1'"),  # type: ignore[arg-type]
    (lambda: readers.local_timestamp("Europe/Berlinn"), "did you mean 'Europe/Berlin'?"),
    (lambda: expect.in_set("region", "NESW"), "in_set: `values` is one text and not a tuple"),
    (lambda: expect.in_set("region", ["N", 5.0]), "in_set: `values[1]` is 5.0; expected a text"),  # type: ignore[list-item]
    (lambda: expect.columns_match(5), "columns_match: `columns[0]` is 5"),  # type: ignore[arg-type]
    (lambda: expect.unique(5), "unique: `columns` is 5; expected a text or a list"),  # type: ignore[arg-type]
    (lambda: expect.unique(()), "name the columns"),
]


@pytest.mark.parametrize(("declare", "text"), REFUSED)
def test_it_is_refused_with_a_sentence(declare: Callable[[], object], text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        declare()

    assert text in str(caught.value)


def test_what_may_be_meant_is_taken() -> None:
    assert build(process())
    for zone in ("+02:00", "UTC+2", "Z", "UT", "America/New_York"):
        assert readers.local_timestamp(zone).zone == zone
