import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable
from rich.status import Status

from rivermark.cli.console import PlainConsole
from rivermark.cli.exit_codes import ExitCode
from rivermark.cli.status import print_statuses
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.status import StreamStatus, life, status_of
from rivermark.runtime.restart.outbox import Outbox, Trouble
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from tests.unit.cli.conftest import BUSIEST, HOURLY, NOON, ONE, ORDERS, SHOP, Run
from tests.unit.conftest import Put

WIDE = {"COLUMNS": "250"}


def file_outcome(name: str, admitted: int, late: int, aside: int) -> dict[str, Any]:
    rows = admitted + late + aside
    counts = {"rows": rows, "admitted": admitted, "late": late, "quarantined": aside}
    return {"stream": "shop/orders", "file": name, "path": f"/l/{name}", **counts}


def batch(stream: str, generation: int, number: int, rows: int, **more: Any) -> dict[str, Any]:
    return {
        "stream": stream,
        "generation": generation,
        "batch_id": number,
        "started_at": NOON + number * ONE,
        "rows_in": rows,
        **more,
    }


def beat(**more: Any) -> Heartbeat:
    known = {"stream": "shop/orders", "group": "shop", "run_id": "run-1", "pid": os.getpid()}
    return Heartbeat(**{**known, **more})


def test_a_platform_that_never_ran_has_a_status(rivermark: Run, shop: Topology) -> None:
    result = rivermark("status", env=WIDE)

    assert result.exit_code == 0
    assert result.stdout.count("never ran") == 3
    assert "shop: desired paused; never set to run (nobody)" in result.stdout


def test_an_ingest_counts_the_rows_of_its_files(settings: Settings, put: Put) -> None:
    put(INGEST_FILES, file_outcome("a.json", 8, 1, 1), file_outcome("b.json", 5, 0, 0))

    orders = status_of(settings, [ORDERS], NOON)[0]

    counted = (orders.rows_in, orders.admitted, orders.late, orders.quarantined)
    assert counted == (15, 13, 1, 1)


def test_rows_are_counted_in_whatever_file_they_lie(settings: Settings, put: Put) -> None:
    """Newest batches and generations may lie in the oldest file, or in one of several streams."""
    for number in (2, 0, 1):
        put(INGEST_FILES, file_outcome(f"{number}.json", 8, number, 1))
        put(
            STREAM_PROGRESS,
            batch("shop/hourly", number % 2, number, 10, watermark=NOON + number * ONE),
            batch("shop/busiest", 0, number, 1 + number, gauges={"open": 1.0 + number}),
        )
    lake, now = settings.lake(), NOON + 9 * ONE
    before = status_of(settings, [ORDERS, HOURLY, BUSIEST], now)

    for table in (INGEST_FILES, STREAM_PROGRESS):
        DeltaTable(lake.path(table)).optimize.compact()
        assert DeltaTable(lake.path(table)).get_add_actions().num_rows == 1

    orders, hourly, busiest = status_of(settings, [ORDERS, HOURLY, BUSIEST], now)
    assert [orders, hourly, busiest] == before
    assert (orders.rows_in, orders.admitted, orders.late, orders.quarantined) == (30, 24, 3, 3)
    assert (hourly.rows_in, hourly.watermark) == (10, NOON + ONE)
    assert (busiest.rows_in, busiest.last_batch_at) == (6, NOON + 2 * ONE)
    assert busiest.metrics == {"open": 3.0}


@pytest.mark.parametrize("table", [INGEST_FILES, STREAM_PROGRESS])
def test_a_damaged_file_of_what_is_counted_is_told(
    rivermark: Run, shop: Topology, settings: Settings, put: Put, table: Table
) -> None:
    for number in range(3):
        put(table, {"stream": "shop/orders"}, {"stream": f"shop/{number}"})
    file = sorted(Path(settings.lake().path(table)).glob("*.parquet"))[1]
    file.write_bytes(file.read_bytes()[:-20])

    result = rivermark("status", env=WIDE)

    assert result.exit_code == ExitCode.FAULT
    assert file.name in result.stderr.replace("\n", "")


def test_a_derived_stream_counts_its_batches_and_its_tables_rows(
    settings: Settings, put: Put
) -> None:
    put(HOURLY.tables[0], {"window_end": NOON, "orders": 3}, {"window_end": NOON, "orders": 4})
    put(
        STREAM_PROGRESS,
        batch("shop/hourly", 0, 0, 10, watermark=NOON),
        batch("shop/hourly", 0, 1, 5, watermark=NOON + ONE),
    )

    hourly = status_of(settings, [HOURLY], NOON)[0]

    assert (hourly.rows_in, hourly.rows) == (15, 2)
    assert (hourly.watermark, hourly.last_batch_at) == (NOON + ONE, NOON + ONE)


def test_numbers_that_a_process_gives_itself_are_told(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    put(
        STREAM_PROGRESS,
        batch("shop/hourly", 0, 0, 9, counters={"odd": 100}),
        batch("shop/hourly", 1, 0, 9, counters={"odd": 1_999}, gauges={"open": 8.0}),
        batch("shop/hourly", 1, 1, 9, counters={"odd": 1}, gauges={"open": 2.5}),
    )

    hourly = status_of(settings, [HOURLY], NOON)[0]

    assert hourly.metrics == {"odd": 2_000, "open": 2.5}
    assert "shop/hourly counts odd 2,000, open 2.5" in rivermark("status", env=WIDE).stdout


def test_after_a_reset_only_the_new_generation_counts(settings: Settings, put: Put) -> None:
    put(
        STREAM_PROGRESS,
        batch("shop/hourly", 0, 7, 100, watermark=NOON + 9 * ONE),
        batch("shop/hourly", 1, 0, 4, watermark=NOON),
    )

    hourly = status_of(settings, [HOURLY], NOON)[0]

    assert (hourly.rows_in, hourly.watermark) == (4, NOON)


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ({"state": "running"}, ("running", True)),
        ({"state": "stopped"}, ("stopped", None)),
        ({"state": "failed", "error": "no space"}, ("failed", None)),
    ],
)
def test_a_heartbeat_says_how_the_stream_is(said: dict[str, Any], seen: tuple[str, bool]) -> None:
    assert life(beat(**said), datetime.now(UTC)) == seen


def test_a_stream_whose_process_is_gone_is_dead_whatever_its_last_words() -> None:
    unused = max(psutil.pids()) + 10_000

    assert life(beat(state="running", pid=unused), datetime.now(UTC))[1] is False


def test_a_process_that_says_nothing_is_silent() -> None:
    state, alive = life(beat(state="running"), datetime.now(UTC) + timedelta(minutes=5))

    assert state.startswith("silent for 3")
    assert alive is True


def test_a_failed_stream_shows_its_error_and_the_wish_of_its_group(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    HeartbeatStore(settings.state).beat(beat(state="failed", error="disk full [/data]"))
    DesiredStore(settings.state).set("shop", "run", by="ada", reason="opening day")

    shown = rivermark("status", "--group", "shop", env=WIDE).stdout

    assert "failed: disk full [/data]" in shown
    assert "shop: desired run; opening day (ada, " in shown
    assert "shop/busiest" not in shown


def test_a_damaged_heartbeat_hides_nothing(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    HeartbeatStore(settings.state).beat(beat())
    (settings.state / "heartbeats" / "shop.orders.json").write_text("{")

    shown = rivermark("status", env=WIDE)

    assert shown.exit_code == 0
    assert "unreadable" in shown.stdout


def test_json_has_groups_and_one_object_a_stream(
    rivermark: Run, shop: Topology, put: Put, settings: Settings
) -> None:
    put(INGEST_FILES, file_outcome("a.json", 8, 1, 1))

    document = json.loads(rivermark("status", "--json").stdout)

    assert document["lake"] == settings.lake_root
    groups = {each["group"]: each["state"] for each in document["groups"]}
    assert groups == {"shop": "paused", "reports": "paused"}
    found = {row["stream"]: row for row in document["streams"]}
    assert list(found) == [s.name for s in SHOP.streams]
    assert found["shop/orders"]["admitted"] == 8
    assert found["shop/hourly"]["rows"] == 0


def test_the_status_is_a_table_at_110_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """With a name as long as those shipped, times, five digits, and a failed stream beside it."""
    name, now = "readings/rising_temperatures", datetime(2026, 3, 2, tzinfo=UTC)
    known = StreamStatus(
        stream=name,
        group="readings",
        state="never ran",
        alive=None,
        rows_in=29_962,
        admitted=29_962,
        late=12,
        quarantined=1_234,
        watermark=now,
        last_batch_at=now - timedelta(minutes=59),
    )
    failed = replace(known, state="failed", error="the disk of the lake is full " * 5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "110")
        print_statuses([known, failed], "readings: desired run", now)

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 110
    [row, other] = [line.split() for line in lines if line.startswith(f" {name}  ")]
    assert " ".join(row[1:]) == ("29,962 29,962 12 1,234 2026-03-02 00:00 59 min ago never ran")
    assert other[-1] == "failed"
    assert any(line.startswith(f" {name} failed: the disk") for line in lines)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("status", "Reading tables"),
        ("show shop/hourly", "Reading shop/hourly"),
        ("checks --no-suites", "Checking"),
        ("dashboard", "Reading streams and tables"),
        ("upkeep --dry-run", "Looking after tables"),
    ],
)
def test_what_may_take_long_says_on_a_terminal_what_it_does(
    command: str,
    said: str,
    rivermark: Run,
    shop: Topology,
    put: Put,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(HOURLY.tables[0], {"window_end": NOON, "orders": 3})
    shown: list[str] = []
    status = PlainConsole.status

    def kept(console: PlainConsole, text: str) -> Status:
        shown.append(text)
        return status(console, text)

    monkeypatch.setattr(PlainConsole, "status", kept)

    assert rivermark(*command.split()).exit_code == 0
    assert said in shown


def test_a_notice_that_could_not_be_sent_is_told(
    rivermark: Run, settings: Settings, shop: Topology
) -> None:
    outbox = Outbox(settings.state)
    outbox.update("sensor", [Trouble(cause="given_up:shop", about="shop", message="given up")])
    (notice,) = outbox.due()
    assert "could not be sent" not in rivermark("status", env=WIDE).stdout

    outbox.tried(notice, "https at hooks.example answered 404: no such hook")

    assert (
        "a notice could not be sent (1 tries, https at hooks.example answered 404: no such hook): "
        "given up"
    ) in rivermark("status", env=WIDE).stdout
    (unsent,) = json.loads(rivermark("status", "--json").stdout)["unsent"]
    assert unsent["cause"] == "given_up:shop"
