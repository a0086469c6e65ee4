import json
from datetime import datetime, timedelta
from typing import Any

from rivermark.cli.show import newest_rows
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, NOON, ONE, ORDERS, Run
from tests.unit.conftest import Put

WIDE = {"COLUMNS": "250"}
TABLE = HOURLY.tables[0]


def hour(number: int) -> dict[str, Any]:
    return {"window_end": NOON + number * ONE, "orders": number}


def order(number: int) -> dict[str, Any]:
    return {"order_id": number, "at": NOON + timedelta(minutes=number), "customer": f"c{number}"}


def test_the_newest_rows_come_first(settings: Settings, put: Put) -> None:
    put(TABLE, *map(hour, (1, 4, 2, 3)))

    assert [r["orders"] for r in newest_rows(settings.lake(), TABLE, 2)] == [4, 3]
    oldest = newest_rows(settings.lake(), TABLE, 2, oldest=True)
    assert [r["orders"] for r in oldest] == [1, 2]


def test_a_table_is_shown_as_it_was(rivermark: Run, shop: Topology, put: Put) -> None:
    put(TABLE, hour(1))
    put(TABLE, hour(2))

    now, before = rivermark("show", TABLE.name), rivermark("show", TABLE.name, "--version", "1")

    assert "2 of 2 rows, version 2" in now.stdout
    assert "1 of 1 rows, version 1" in before.stdout
    assert "2026-03-02 14:00:00" not in before.stdout


def test_a_moment_before_the_table_is_refused_with_the_earliest(
    rivermark: Run, shop: Topology, put: Put
) -> None:
    put(TABLE, hour(1))

    result = rivermark("show", TABLE.name, "--version", "2020-01-01")

    assert result.exit_code == 1
    assert "the earliest moment is" in result.stderr


def test_n063_an_order_that_bad_rows_do_not_have_is_refused(rivermark: Run, shop: Topology) -> None:
    result = rivermark("show", TABLE.name, "--bad", "all", "--oldest")

    assert result.exit_code == 2
    assert "--oldest shows whole tables" in " ".join(result.stderr.split())


def test_personal_columns_are_hidden_unless_asked_for(
    rivermark: Run, shop: Topology, put: Put
) -> None:
    put(ORDERS.admitted, order(1))

    hidden = rivermark("show", "shop/orders", env=WIDE).stdout
    shown = rivermark("show", "shop/orders", "--personal", env=WIDE).stdout

    assert "c1" not in hidden
    assert "hidden as personal: customer" in hidden
    assert "c1" in shown


def test_the_platforms_own_tables_are_shown_too(rivermark: Run, shop: Topology, put: Put) -> None:
    put(STREAM_PROGRESS, {"stream": "shop/orders", "batch_id": 7, "started_at": NOON})

    result = rivermark("show", "ops/stream_progress")

    assert "2026-03-02 12:00:00" in result.stdout
    assert rivermark("show", "ops/nothing").exit_code == 2


def test_rows_are_ordered_by_key_where_their_time_is_one(settings: Settings, put: Put) -> None:
    same = datetime(2026, 3, 2, 12, tzinfo=NOON.tzinfo)
    put(ORDERS.admitted, *({"order_id": n, "at": same} for n in (3, 1, 2)))

    found = newest_rows(settings.lake(), ORDERS.admitted, 10)

    assert [r["order_id"] for r in found] == [1, 2, 3]


def test_quarantine_shows_the_fields_that_failed_although_another_one_is_personal(
    rivermark: Run, shop: Topology, put: Put
) -> None:
    broken = {"stream": ORDERS.name, "reasons": ["unreadable_order_id"], "payload": "{c9}"}
    put(
        ORDERS.quarantine,
        {**broken, "details": "order_id=seven"},
        {**broken, "details": "order_id=eight; customer=c8"},
    )

    shown = rivermark("show", ORDERS.quarantine.name, env=WIDE).stdout
    rows = json.loads(rivermark("show", ORDERS.quarantine.name, "--json").stdout)["rows"]
    everything = rivermark("show", ORDERS.quarantine.name, "--personal", env=WIDE).stdout

    assert "order_id=seven" in shown
    assert not any(text in shown for text in ("c8", "eight", "c9"))
    assert sorted(row.get("details", "") for row in rows) == ["", "order_id=seven"]
    assert not any("payload" in row for row in rows)
    assert "customer=c8" in everything
