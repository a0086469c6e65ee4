import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark.cli.files import FileState, file_states
from rivermark.ingest.plan import BatchPlanner, plan_table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.topology import Topology
from rivermark.monitor.changed_files import files_unchanged
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.settings import Settings
from rivermark.sources import ElementsSource
from tests.unit.cli.conftest import ORDERS, Run, drop
from tests.unit.conftest import Put


def fates(settings: Settings) -> dict[str, FileState]:
    return {fate.name: fate for fate in file_states(settings, ORDERS)}


def test_each_file_is_read_arrived_or_waiting(settings: Settings, put: Put) -> None:
    read = drop(settings, "a.json", "{}\n", age_seconds=60)
    drop(settings, "b.json", "{}\n", age_seconds=50)
    BatchPlanner(settings.lake(), settings.landing_root, ORDERS, "run-1").poll()
    drop(settings, "c.json", "{}\n", age_seconds=40)
    drop(settings, "half.json", '{"order_id": 1', age_seconds=5)
    drop(settings, "fresh.json", "{}\n", age_seconds=0)
    counts = {"rows": 9, "admitted": 7, "late": 1, "quarantined": 1, "ingest_batch": 0}
    put(INGEST_FILES, {"stream": "shop/orders", "file": "a.json", "path": str(read), **counts})

    found = fates(settings)

    assert list(found)[:2] == ["a.json", "b.json"]
    a = found["a.json"]
    assert (a.state, a.rows, a.admitted, a.late, a.quarantined) == ("read", 9, 7, 1, 1)
    assert found["b.json"].state == "arrived; its rows come with the next batch"
    assert found["c.json"].state == "waiting: ready for the next run"
    assert found["half.json"].state == "waiting: looks unfinished: no line end"
    assert found["fresh.json"].state == "waiting: changed a moment ago"


def test_b044_a_file_that_was_overwritten_after_it_was_read_is_told(
    settings: Settings, put: Put
) -> None:
    now = datetime.now(UTC)
    for name in "abc":
        drop(settings, f"{name}.json", "{}\n", age_seconds=60)
    BatchPlanner(settings.lake(), settings.landing_root, ORDERS, "run-1").poll()
    for name, content, age in (("a", "{}\n", 60), ("b", "{} \n", 60), ("c", "[]\n", 5)):
        path = drop(settings, f"{name}.json", content, age_seconds=age)
        read = {"size": 3, "modified_at": now - timedelta(seconds=60), "path": str(path)}
        put(INGEST_FILES, {"stream": "shop/orders", "file": f"{name}.json", **read})
    gone = {"path": str(Path(settings.landing_root, "gone.json")), "size": 3, "modified_at": now}
    put(INGEST_FILES, {"stream": "shop/orders", "file": "gone.json", **gone})

    found = fates(settings)
    assert found["a.json"].state == found["gone.json"].state == "read"
    assert found["b.json"].state == "read; changed since, from 3 to 4 bytes"
    assert found["c.json"].state.startswith("read; written again since, ")


def test_b044_a_change_is_known_by_content_whatever_the_times_say(
    settings: Settings, put: Put
) -> None:
    paths = {n: drop(settings, f"{n}.json", '{"n": 1}\n', age_seconds=60) for n in "abcd"}
    BatchPlanner(settings.lake(), settings.landing_root, ORDERS, "run-1").poll()
    planned = DeltaTable(settings.lake().path(plan_table(ORDERS))).to_pyarrow_table().to_pylist()
    for row in planned:
        read = {name: row[name] for name in ("path", "size", "modified_at", "digest")}
        put(
            INGEST_FILES,
            {"stream": "shop/orders", "file": row["name"], "at": datetime.now(UTC), **read},
        )
    before = paths["b"].stat()
    paths["b"].write_text('{"n": 2}\n')
    os.utime(paths["b"], ns=(before.st_atime_ns, before.st_mtime_ns))
    paths["c"].write_text('{"n": 2}\n')
    paths["d"].write_text('{"n": 1}\n')

    found = fates(settings)
    assert {n: found[f"{n}.json"].state for n in "abcd"} == {
        "a": "read",
        "b": "read; changed since, its size is the same",
        "c": "read; changed since, its size is the same",
        "d": "read",
    }
    check = files_unchanged(settings, ORDERS)
    assert not check.passed
    assert check.numbers == {"files_changed": 2}
    assert [example["file"] for example in check.examples] == ["b.json", "c.json"]


def test_a_file_set_aside_tells_why(settings: Settings, put: Put) -> None:
    row = {"stream": "shop/orders", "file": "a.json", "path": "/a.json", "reason": "file_empty"}
    put(INGEST_FILES, row)

    assert fates(settings)["a.json"].state == "quarantined: file_empty"


def test_n014_files_that_fit_no_pattern_are_listed_and_hidden_ones_are_not(
    settings: Settings,
) -> None:
    for name in (".a.json", "_b.json", "notes.txt", "B.JSON", "sub/c.jsonl"):
        drop(settings, name, "{}\n", age_seconds=60)

    found = fates(settings)
    assert sorted(found) == ["B.JSON", "notes.txt", "sub/c.jsonl"]
    assert {file.state for file in found.values()} == {"not taken: fits no pattern of *.json"}


def test_looking_takes_nothing(rivermark: Run, shop: Topology, settings: Settings) -> None:
    drop(settings, "a.json", "{}\n", age_seconds=60)

    result = rivermark("files", "shop/orders")

    assert "waiting: ready for the next run" in result.stdout
    assert "1 of 1 files" in result.stdout
    assert f"Landing root: {settings.landing_root}" in " ".join(result.stdout.splitlines())
    assert not settings.lake().exists(plan_table(ORDERS))


def test_only_the_newest_files_are_shown(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    for n in range(5):
        drop(settings, f"{n}.json", "{}\n", age_seconds=60 - n)

    shown = rivermark("files", "shop/orders", "--limit", "2").stdout

    assert "3.json" in shown
    assert "4.json" in shown
    assert "2.json" not in shown


def test_splits_of_another_source_are_listed_as_what_they_are(
    rivermark: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ElementsSource(elements=({"order_id": 1, "at": "2026-03-02T12:00:00Z"},))
    ingest = replace(ORDERS, source=source)
    monkeypatch.setattr("rivermark.cli.files.topology", lambda: Topology([ingest]))

    shown = rivermark("files", "shop/orders").stdout
    assert "range-000000000000" in shown
    assert "1 of 1 ranges. 1 fixed records." in shown
    assert "file" not in shown
    assert "Landing root" not in shown


def test_a_stream_of_tables_has_no_files(rivermark: Run, shop: Topology) -> None:
    result = rivermark("files", "shop/hourly")

    assert result.exit_code == 2
    assert "'shop/hourly' reads tables, not a source" in result.stderr


def test_n051_names_values_and_errors_of_a_payload_reach_no_terminal_as_they_are(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    evil = "a\x1b[31m\x1b]0;owned\x07.json"
    drop(settings, evil, "{}\n", age_seconds=60)
    put(ORDERS.admitted, {"order_id": 1, "at": datetime(2026, 3, 2, tzinfo=UTC), "customer": evil})
    error = Heartbeat(
        stream="shop/orders", group="shop", run_id="r", pid=1, state="failed", error=evil
    )
    HeartbeatStore(settings.state).beat(error)

    for command in (
        "files shop/orders",
        "files shop/orders --json",
        "show shop/orders --personal",
        "show shop/orders --personal --json",
        "status",
        "status --json",
        f"retake shop/orders {evil}",
    ):
        for columns in ("40", "250"):
            result = rivermark(*command.split(" "), env={"COLUMNS": columns})
            shown = "".join((result.stdout + result.stderr).split())
            assert "owned" in shown, command
            assert not {"\x1b", "\x07"} & set(result.stdout + result.stderr), command
    (listed,) = json.loads(rivermark("files", "shop/orders", "--json").stdout)["streams"]
    assert [file["name"] for file in listed["files"]] == [evil]
