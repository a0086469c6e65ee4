"""`rivermark checks`: its exit code is that of the checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import CHECK_RESULTS, newest_results
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, NOON, ORDERS, Run
from tests.unit.conftest import Put

OF_FILE = {"_file": "a.json", "_ingest_batch": 0}


def admitted(settings: Settings, put: Put, *, rows: int, quarantined: int = 0) -> None:
    """Orders of one file, which adds up."""
    placed = [{"order_id": n, "at": NOON, **OF_FILE, "_row": n} for n in range(rows)]
    put(ORDERS.raw, *({**OF_FILE, "_row": n} for n in range(rows + quarantined)))
    put(ORDERS.admitted, *placed)
    refused = [{**OF_FILE, "_row": rows + n, "reasons": ["x"]} for n in range(quarantined)]
    if refused:
        put(ORDERS.quarantine, *refused)
    file = {"stream": "shop/orders", "file": "a.json", "path": "/l/a.json", "ingest_batch": 0}
    counts = {"rows": rows + quarantined, "admitted": rows, "late": 0, "quarantined": quarantined}
    put(INGEST_FILES, {**file, **counts})
    create_table(settings.lake(), ORDERS.late)


def document(rivermark: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = rivermark("checks", "shop/orders", "--no-suites", "--json", *arguments)
    return result.exit_code, json.loads(result.stdout)


def test_where_nothing_has_run_nothing_is_broken(rivermark: Run, shop: Topology) -> None:
    result = rivermark("checks")

    assert result.exit_code == 0, result.output
    assert result.stdout == "0 held, 0 warn, 0 error, 0 unanswered\n"


def test_checks_that_hold_end_with_0_and_are_listed_on_request(
    rivermark: Run, shop: Topology, put: Put, settings: Settings
) -> None:
    admitted(settings, put, rows=200)

    code, held = document(rivermark)
    assert (code, held["warn"], held["error"], held["unanswered"]) == (0, 0, 0, 0)
    assert held["held"] == len(held["checks"]) > 4
    assert "is_alive" not in rivermark("checks", "shop/orders", "--no-suites").stdout
    assert "is_alive" in rivermark("checks", "shop/orders", "--no-suites", "--all").stdout


def test_a_warning_ends_with_3_and_a_broken_check_with_1(
    rivermark: Run, shop: Topology, put: Put, settings: Settings
) -> None:
    admitted(settings, put, rows=10, quarantined=10)
    code, warned = document(rivermark)
    assert (code, warned["error"], warned["warn"]) == (3, 0, 1)

    put(ORDERS.raw, {**OF_FILE, "_row": 99})
    code, broken = document(rivermark)
    assert code == 1
    assert broken["error"] >= 1
    said = rivermark("checks", "--group", "shop", "--no-suites", env={"COLUMNS": "250"})
    assert said.exit_code == 1
    assert said.stdout.splitlines()[3].split()[0] == "error"


def test_rules_of_suites_count_too_and_a_table_that_cannot_be_read_is_no_silence(
    rivermark: Run, shop: Topology, put: Put, settings: Settings
) -> None:
    put(HOURLY.tables[0], {"window_end": NOON, "orders": 1}, {"window_end": NOON, "orders": 2})
    result = rivermark("checks", "shop/hourly", "--json")
    assert result.exit_code == 1
    names = {c["check"] for c in json.loads(result.stdout)["checks"] if c["result"] == "error"}
    assert any("window_end" in name for name in names)

    def broken(*_: object) -> None:
        raise OSError("gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rivermark.cli.checks.dataset_of", broken)
        result = rivermark("checks", "shop/hourly", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["unanswered"] == 1


def test_results_are_kept_on_request_only(
    rivermark: Run, shop: Topology, put: Put, settings: Settings
) -> None:
    admitted(settings, put, rows=5)
    lake: Lake = settings.lake()

    document(rivermark)
    assert not lake.exists(CHECK_RESULTS)
    document(rivermark, "--record")
    assert {r.stream for r in newest_results(settings, 1)} == {"shop/orders"}
