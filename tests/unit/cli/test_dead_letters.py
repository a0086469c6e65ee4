"""`rivermark dead-letters` over tables that a stream left; nothing starts an engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermark.backfill.maintenance import kept_tables, upkeep
from rivermark.model.topology import Topology
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.replaying import replays_of
from rivermark.runtime.checkpoint.generation import Generation, write_generation
from rivermark.runtime.checkpoint.positions import read_by_stream
from rivermark.runtime.checkpoint.process_schema import ProcessRecord, write_record
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.settings import Settings
from tests.spark.helpers.sensors import READINGS
from tests.spark.process.rules import FAILED, WATCHED
from tests.unit.cli.conftest import Entry, Run
from tests.unit.conftest import Put

AT = datetime(2024, 3, 1, 11, tzinfo=UTC)
NAME = "test/watched"


def dead(key: str, **more: Any) -> dict[str, Any]:
    return {
        "process": "Watched",
        "input": "events",
        "key_json": json.dumps(key),
        "event_time": AT,
        "event_json": json.dumps({"sensor": key, "at": 1, "temperature": "9"}),
        "error": "ValueError",
        "message": "met a poisoned reading",
        "line": "rules.py:1 in on_event",
        **more,
    }


@pytest.fixture(autouse=True)
def deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [Entry("default", Topology([READINGS, WATCHED]))]
    monkeypatch.setattr("rivermark.cli.deployment.entry_points", lambda **_: entries)


def begun(settings: Settings, *, replays: bool = True, number: int = 0) -> None:
    lake, build = settings.lake(), WATCHED.build
    assert isinstance(build, ProcessBuild)
    write_generation(lake, WATCHED, Generation(number, AT, 2))
    record = ProcessRecord(4, (build.declared.schema,), replays)
    write_record(lake.checkpoint(NAME, number), record)


def shown(rivermark: Run) -> list[dict[str, Any]]:
    result = rivermark("dead-letters", "show", NAME, "--json")
    (stream,) = json.loads(result.stdout)["streams"]
    letters: list[dict[str, Any]] = stream["letters"]
    return letters


def test_without_dead_letters_each_command_says_so(rivermark: Run, settings: Settings) -> None:
    begun(settings)

    assert "no dead letters" in rivermark("dead-letters", "list").stdout
    assert "nothing waits" in rivermark("dead-letters", "replay", NAME, "--all").stdout
    refused = rivermark("dead-letters", "list", READINGS.name)
    assert refused.exit_code == 1
    assert "keeps no dead letters: its process needs dead_letter = True" in refused.stderr


def test_letters_are_listed_shown_with_error_and_event_and_replayed_once(
    rivermark: Run, settings: Settings, put: Put
) -> None:
    begun(settings)
    timer = dead("c", input=None, event_json=None, error="KeyError")
    put(FAILED, dead("a"), dead("a"), dead("b"), timer)

    assert "ValueError" in rivermark("dead-letters", "list").stdout
    letters = {each["key"]: each for each in shown(rivermark)}
    assert {key: each["waiting"] for key, each in letters.items()} == {'"a"': 2, '"b"': 1, '"c"': 1}
    one = rivermark("dead-letters", "show", NAME, letters['"a"']["id"]).stdout
    assert "ValueError: met a poisoned reading (rules.py:1 in on_event)" in one
    assert '"temperature": "9"' in one

    first = rivermark("dead-letters", "replay", NAME, letters['"b"']["id"])
    assert "1 events of 1 dead letters" in first.stdout
    assert "2 events of 1 dead letters" in rivermark("dead-letters", "replay", NAME, "--all").stdout
    assert "nothing waits" in rivermark("dead-letters", "replay", NAME, "--all").stdout
    assert {each["key"]: each["waiting"] for each in shown(rivermark)} == {
        '"a"': 0,
        '"b"': 0,
        '"c"': 1,
    }
    put(FAILED, dead("b", error="TypeError"))
    again = next(each for each in shown(rivermark) if each["key"] == '"b"')
    assert (again["failures"], again["replays"], again["waiting"]) == (2, 1, 1)
    assert {each["error"] for each in again["errors"]} == {"ValueError", "TypeError"}


def test_what_cannot_be_replayed_is_refused_with_what_to_do(
    rivermark: Run, settings: Settings, put: Put
) -> None:
    put(FAILED, dead("a"), dead("c", input=None, event_json=None))
    assert "was begun without" in rivermark("dead-letters", "replay", NAME, "--all").stderr
    begun(settings, replays=False)
    assert (
        "rivermark reset test/watched" in rivermark("dead-letters", "replay", NAME, "--all").stderr
    )
    begun(settings)
    timer = next(each for each in shown(rivermark) if each["event"] is None)
    told = rivermark("dead-letters", "replay", NAME, timer["id"]).stderr
    assert "is a timer of which only the key is known, so it cannot be" in told
    assert "has no dead letter 'x'" in rivermark("dead-letters", "replay", NAME, "x").stderr
    assert "or --all" in rivermark("dead-letters", "replay", NAME).stderr


def test_a_timer_is_set_again_with_its_kind_of_time(
    rivermark: Run, settings: Settings, put: Put
) -> None:
    begun(settings)
    put(FAILED, dead("c", input=None, event_json='{"timer":"processing"}', error="KeyError"))
    (timer,) = shown(rivermark)
    assert (timer["event"], timer["timer"], timer["waiting"]) == (None, "processing", 1)

    assert "1 events of 1 dead letters" in rivermark("dead-letters", "replay", NAME, "--all").stdout
    assert [each["waiting"] for each in shown(rivermark)] == [0]
    (row,) = DeltaTable(settings.lake().path(replays_of(NAME))).to_pyarrow_table().to_pylist()
    assert (row["input"], row["key_json"], row["event_time"]) == (None, '"c"', AT)
    assert row["event_json"] == '{"timer":"processing"}'


def test_replays_of_an_earlier_generation_do_not_count(
    rivermark: Run, settings: Settings, put: Put
) -> None:
    begun(settings, number=1)
    put(FAILED, dead("a"))
    row = dead("a")
    kept = {name: row[name] for name in ("input", "key_json", "event_time", "event_json")}
    put(replays_of(NAME), {**kept, "generation": 0, "replayed_at": AT})

    assert [each["waiting"] for each in shown(rivermark)] == [1]


def test_upkeep_joins_what_was_replayed_up_to_where_the_stream_has_come(
    rivermark: Run, settings: Settings, put: Put
) -> None:
    begun(settings)
    for n in range(12):
        put(FAILED, dead(f"s{n}"))
        assert "1 events of 1" in rivermark("dead-letters", "replay", NAME, "--all").stdout
    lake, topology = settings.lake(), Topology([READINGS, WATCHED])
    table = replays_of(NAME)
    assert kept_tables(topology)[table.name] == table
    # The stream follows its commits, as those of its inputs; it has not begun to.
    assert table in read_by_stream(WATCHED)
    assert readers_of(lake, topology, table) == []
    (kept,) = upkeep(settings, topology, [table.name], run_id="u")
    files = DeltaTable(lake.path(table)).file_uris()

    assert kept.table == table.name
    assert len(files) == 1
    assert DeltaTable(lake.path(table)).to_pyarrow_table().num_rows == 12
