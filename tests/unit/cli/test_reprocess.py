"""What the console makes of a reprocessing: played where an engine is needed, real where not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermark.backfill.difference import DaySums, Difference, Sample
from rivermark.backfill.recompute import Order
from rivermark.backfill.registry import register
from rivermark.backfill.result import Reprocessing
from rivermark.lake.replace import replace_days
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from tests.oracles.reprocessings import reprocessing
from tests.unit.cli.conftest import HOURLY, NOON, Run
from tests.unit.conftest import Put

DAY = date(2026, 3, 2)
TABLE = HOURLY.tables[0]
WIDE = {"COLUMNS": "250"}
ASK = ("reprocess", "shop/hourly", "--from", "2026-03-02")


def answer(order: Order, kind: Any) -> Reprocessing:
    """A reprocessing that found one changed row."""
    difference = Difference(
        changed=1,
        unchanged=23,
        columns={"orders": 1},
        days={DAY: {"added": 0, "removed": 0, "changed": 1, "unchanged": 23}},
        sums=(DaySums(DAY, "orders", Decimal(24), Decimal(25)),),
        samples=(Sample("changed", {"window_end": NOON}, {"orders": (1, 2)}),),
    )
    return reprocessing(
        order.stream.name,
        order.first,
        order.last,
        difference,
        before=8,
        after=9 if kind == "replaced" else None,
        kind=kind,
        run_id=order.run_id,
        inputs={"shop/orders": 4},
        parameters=order.parameters or {},
    )


@pytest.fixture
def orders(shop: Topology, monkeypatch: pytest.MonkeyPatch) -> list[Order]:
    """The orders that reached the library, whose days all count as closed."""
    given: list[Order] = []

    @contextmanager
    def engine(*_: object) -> Iterator[None]:
        yield None

    def way(kind: str) -> Callable[..., Reprocessing]:
        def take(_spark: object, _settings: object, order: Order) -> Reprocessing:
            given.append(order)
            order.on_step("computing")
            return answer(order, kind)

        return take

    monkeypatch.setattr("rivermark.cli.backfill.engine", engine)
    monkeypatch.setattr("rivermark.backfill.recompute.replace", way("replaced"))
    monkeypatch.setattr("rivermark.backfill.recompute.rehearse", way("rehearsed"))
    monkeypatch.setattr("rivermark.backfill.reprocess.check_closed", lambda *_: None)
    return given


def test_a_replacement_tells_versions_sums_samples_follow_ups_and_how_to_undo(
    rivermark: Run, orders: list[Order]
) -> None:
    result = rivermark(*ASK, "--to", "2026-03-03", "--as-of", "4", env=WIDE)

    assert result.exit_code == 0, result.output
    (order,) = orders
    assert (order.first, order.last, order.as_of) == (DAY, date(2026, 3, 3), 4)
    assert "from shop/orders version 4" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line for line in lines if line[:2] == ["shop/hourly", "0"]] == [
        ["shop/hourly", "0", "0", "1", "23", "orders", "1", "8", "9"]
    ]
    assert ["2026-03-02", "orders", "24", "25"] in lines
    assert "orders 1 → 2" in result.stdout
    assert "--undo 20260302-120000-abcd" in result.stdout
    assert "not recomputed: shop/busiest" in result.stderr
    assert "computing" in result.stderr


def test_a_rehearsal_offers_nothing_to_undo(rivermark: Run, orders: list[Order]) -> None:
    result = rivermark(*ASK, "--rehearse", env=WIDE)

    assert "rehearsed" in result.stdout
    assert "--undo" not in result.output


def test_the_report_is_json_for_machines(rivermark: Run, orders: list[Order]) -> None:
    (found,) = json.loads(rivermark(*ASK, "--rehearse", "--json").stdout)

    assert found["inputs"] == {"shop/orders": 4}
    table = found["tables"]["shop/hourly"]
    assert (table["changed"], table["changed_columns"]) == (1, {"orders": 1})
    assert table["sums"] == [
        {"day": "2026-03-02", "column": "orders", "before": "24", "after": "25"}
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("reprocess", "shop/orders", "--from", "2026-03-01"), "reset shop/orders --with-tables"),
        (("reprocess", "shop/hourly"), "no day was given"),
        (("reprocess",), "no stream was named"),
        (("reprocess", "shop/nothing", "--from", "2026-03-01"), "no stream is named"),
        ((*ASK, "--to", "2026-03-01"), "ends (2026-03-01) before it begins"),
        ((*ASK, "--undo", "x"), "an undo knows its days and versions: leave out first (--from)"),
        ((*ASK[:2], "--undo", "x", "--wait"), "leave out wait_minutes (--wait)"),
        ((*ASK[:2], "--undo", "x", "--rehearse"), "one of them"),
        ((*ASK, "--rehearse", "--what-if", "limit=3"), "one of them"),
        ((*ASK, "--rehearse", "--follow-ups"), "only compares what the declared build returns"),
        ((*ASK, "--what-if", "limit=3", "--follow-ups"), "a what-if only compares: leave out"),
        ((*ASK, "--as-of", "shop/order=3"), "'shop/order' is not read; what is read: shop/orders"),
        ((*ASK, "--list"), "give only streams and --json with it"),
        ((*ASK[:3], "0001-01-01"), "day 0001-01-01 is out of range"),
        ((*ASK, "--what-if", "limit"), "expected NAME=VALUE"),
        ((*ASK, "--what-if", "limit=3"), "it declares no parameters"),
        ((*ASK, "--what-if", "limit=3", "--what-if", "limit=4"), "a name occurs twice"),
        ((*ASK, "--what-if", "build=os:system"), "expected a function of 'tests'"),
        ((*ASK, "--as-of", "yesterday"), "expected a version"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_do(
    rivermark: Run, orders: list[Order], arguments: tuple[str, ...], told: str
) -> None:
    result = rivermark(*arguments)

    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert orders == []


def test_an_open_day_is_refused_before_an_engine_is_started(
    rivermark: Run, orders: list[Order], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PartitionStillOpen("2026-03-02 is still open")

    monkeypatch.setattr("rivermark.backfill.reprocess.check_closed", refuse)

    result = rivermark(*ASK)

    assert result.exit_code == 1
    assert "2026-03-02 is still open" in result.stderr
    assert orders == []


def test_days_are_brought_back_and_the_register_tells_without_an_engine(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    lake = settings.lake()
    put(TABLE, {"window_end": NOON, "orders": 1})
    wrong = DeltaTable(lake.path(TABLE)).to_pyarrow_table().slice(0, 0)
    told = {"reprocessing": "wrong", "recompute": ["2026-03-02"] * 2, "before": 1, "run": "r"}
    replace_days(lake, TABLE, wrong, [DAY], told)

    undone = rivermark("reprocess", "shop/hourly", "--undo", "wrong", env=WIDE)

    assert undone.exit_code == 0, undone.output
    assert DeltaTable(lake.path(TABLE)).to_pyarrow_table()["orders"].to_pylist() == [1]
    listed = rivermark("reprocess", "--list", env=WIDE)
    assert "undone" in listed.stdout
    assert [line.split()[-1] for line in listed.stdout.splitlines() if "undone" in line] == [
        "wrong"
    ]
    (row,) = json.loads(rivermark("reprocess", "shop/hourly", "--list", "--json").stdout)
    assert (row["kind"], row["added"], row["because"]) == ("undone", 1, "wrong")
    assert rivermark("reprocess", "shop/busiest", "--list").stdout.split()[0] == "nothing"


def test_a_rehearsal_on_record_is_nothing_to_undo(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    put(TABLE, {"window_end": NOON, "orders": 1})
    order = Order(stream=HOURLY, first=DAY, last=DAY, run_id="r")
    done = answer(order, "rehearsed")
    register(settings.lake(), done.records())

    result = rivermark("reprocess", "shop/hourly", "--undo", done.id)

    assert result.exit_code == 1
    assert "nothing to undo" in " ".join(result.stderr.split())
