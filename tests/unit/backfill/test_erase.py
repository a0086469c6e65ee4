"""M014: a person's rows leave every table and version; a kill anywhere is finished by a repetition.

The lake is made without an engine; `tests/spark/backfill/test_erase.py` erases beside streams.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from rivermark import Contract, Daily, Field, Ingest, Output, Stream, Table, Topology
from rivermark.backfill.erasure.erase import Erasure, erase
from rivermark.backfill.erasure.person import person_of
from rivermark.backfill.erasure.record import ERASURES
from rivermark.backfill.pending import pending_days
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import (
    RivermarkError,
    StreamAlreadyRunning,
    VersionNotAvailable,
    WrongUse,
)
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.registry import versions_readable
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.process.spark.replaying import replays_of
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from rivermark.sinks.undelivered import undelivered_of
from rivermark.sources import FileSource
from tests.kills import Killer
from tests.oracles.shop import append

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ANN, BOB = "ann@example.org", 'bob "b" öz'
A = "rides/a.json"

RIDES = Ingest(
    name="taxi/rides",
    source=FileSource(folder="taxi/rides"),
    contract=Contract(
        fields=(
            Field("ride", "long", required=True),
            Field("at", "timestamp", required=True),
            Field("rider", "string", names=("riderMail",)),
            Field("tags", "string"),
        ),
        event_time="at",
        keys=("ride",),
    ),
    lateness=timedelta(minutes=1),
    description="Rides.",
    group="taxi",
    days=Daily("at", date(2026, 3, 1)),
    personal=("rider", "tags"),
)
RIDERS = Table(
    name="taxi/riders",
    schema=(
        "rider string, at timestamp, rides long, home struct<mail: string, town: string>,"
        " tags array<string>"
    ),
    description="Rides of a rider.",
    event_time="at",
    keys=("rider", "at"),
    days=Daily("at", date(2026, 3, 1)),
    personal=("rider", "home", "tags"),
)
TOTALS = Table(
    name="taxi/totals",
    schema="at timestamp, rides long",
    description="Rides an hour.",
    event_time="at",
    days=Daily("at", date(2026, 3, 1)),
)


def _first(*frames: Any) -> Any:
    return frames[0]


BY_RIDER = Stream(
    reads=(RIDES,), build=_first, writes=(Output(RIDERS),), group="taxi", description="Riders."
)
COUNTED = Stream(reads=(RIDES,), build=_first, writes=TOTALS, group="taxi")
TAXI = Topology([RIDES, BY_RIDER, COUNTED])


def _place(number: int, batch: int = 0) -> dict[str, Any]:
    return {"_file": A, "_row": number, "_ingest_batch": batch, "_ingested_at": NOON}


def _event(number: int, rider: str, batch: int = 0, **more: Any) -> dict[str, Any]:
    at = NOON + timedelta(minutes=number)
    return {"ride": number, "at": at, "rider": rider, **_place(number, batch), **more}


def _payload(number: int, rider: str) -> str:
    return json.dumps({"ride": number, "riderMail": rider, "fare": 2})


def fill(settings: Settings, *, archives: bool = True) -> None:
    """Six rides of three riders in two batches: four admitted, one late, one quarantined."""

    def put(table: Table, *rows: dict[str, Any]) -> None:
        append(settings, table, list(rows))

    riders = {1: ANN, 2: BOB, 3: "eve", 4: ANN, 5: ANN, 6: ANN}
    put(RIDES.raw, *[_place(n) | {"payload": _payload(n, riders[n])} for n in (1, 2, 3)])
    put(RIDES.raw, *[_place(n, 1) | {"payload": _payload(n, riders[n])} for n in (4, 5, 6)])
    put(RIDES.admitted, *[_event(n, riders[n]) for n in (1, 2, 3)])
    put(RIDES.admitted, _event(4, "eve", 1, tags=ANN))
    put(RIDES.late, _event(5, ANN, 1))
    broken = [
        _place(6, 1) | {"payload": _payload(6, ANN)[:-1], "reasons": ["unreadable"]},
        # Of a file that was read again: at the place of another's row, and of a neighbour's text.
        _place(2) | {"payload": f"2,{ANN},2", "reasons": ["file_replaced"]},
        _place(3) | {"payload": f"3,x{ANN},2", "reasons": ["file_replaced"]},
    ]
    put(RIDES.quarantine, *[{"details": "", **row} for row in broken])
    said = {"stream": RIDES.name, "file": A}
    put(
        INGEST_FILES,
        said | {"ingest_batch": 0, "rows": 3, "admitted": 3, "late": 0, "quarantined": 0},
        said | {"ingest_batch": 1, "rows": 3, "admitted": 1, "late": 1, "quarantined": 1},
    )
    for rider, mail in ((ANN, "a"), ("eve", "e"), ("joe", ANN)):
        put(RIDERS, {"rider": rider, "at": NOON, "rides": 1, "home": {"mail": mail, "town": "b"}})
    put(RIDERS, {"rider": "kim", "at": NOON, "rides": 1, "tags": ["x", ANN]})
    # A version that lost its row since: only an older file has it.
    path = settings.lake().path(RIDERS)
    put(RIDERS, {"rider": ANN, "at": NOON, "rides": 9})
    DeltaTable(path).delete("rides = 9")
    put(TOTALS, {"at": NOON, "rides": 6})
    undelivered = undelivered_of(RIDERS)
    for rider in (ANN, "eve"):
        put(undelivered, {"body": json.dumps({"rider": rider, "n": 1}), "reason": "away"})
    put(
        replays_of("taxi/riders"),
        {"key_json": json.dumps(ANN), "event_json": '{"timer":"event time"}'},
        {"key_json": '"eve"', "event_json": json.dumps({"rider": "eve", "ride": 1})},
    )
    if not archives:
        return
    aside = Path(settings.lake().root, "removed", "20260301T000000Z", "taxi")
    aside.mkdir(parents=True)
    shutil.copytree(settings.lake().path(RIDES.admitted), aside / "rides")
    shutil.copytree(settings.lake().path(RIDES.raw), aside / "rides_raw")
    staged = Path(settings.lake().root, "staged", "_runs", "x")
    staged.mkdir(parents=True)
    parquet.write_table(pa.table({"rider": [ANN]}), staged / "a.parquet")
    parquet.write_table(pa.table({"rider": ["eve"]}), staged / "b.parquet")


def texts_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every file of a lake as text: data files by their rows, all others as they are."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.suffix == ".parquet" and "checkpoint" not in path.name:
            yield path, json.dumps(parquet.read_table(path).to_pylist(), default=str)
        elif path.suffix == ".parquet":
            yield path, str(parquet.read_table(path).to_pylist())
        else:
            yield path, path.read_bytes().decode("utf-8", "replace")


def files_with(settings: Settings, text: str) -> list[str]:
    root = Path(settings.lake().root)
    return [str(path.relative_to(root)) for path, content in texts_below(root) if text in content]


def rows(settings: Settings, table: Table) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (
        DeltaTable(settings.lake().path(table)).to_pyarrow_table().to_pylist()
    )
    return listed


def erase_of(settings: Settings, *given: str, dry_run: bool = False) -> Erasure:
    person = person_of(TAXI, given)
    return erase(settings, TAXI, person, run_id="r", dry_run=dry_run, because="DSR-1", by="dpo")


ALL_OF_ANN = (f"rider={ANN}", f"tags={ANN}", f"home.mail={ANN}")


def check_erased(settings: Settings) -> None:
    # The neighbour's text of a file that was replaced has the address as a part of a longer word.
    left = [name for name in files_with(settings, ANN) if "rides_quarantine" not in name]
    assert left == []
    assert sorted(row["ride"] for row in rows(settings, RIDES.admitted)) == [2, 3]
    assert sorted(row["_row"] for row in rows(settings, RIDES.raw)) == [2, 3]
    assert rows(settings, RIDES.late) == []
    assert [row["_row"] for row in rows(settings, RIDES.quarantine)] == [3]
    assert [row["rider"] for row in rows(settings, RIDERS)] == ["eve"]
    assert [row["rides"] for row in rows(settings, TOTALS)] == [6]
    assert ["eve" in row["body"] for row in rows(settings, undelivered_of(RIDERS))] == [True]
    assert [row["key_json"] for row in rows(settings, replays_of("taxi/riders"))] == ['"eve"']
    conserved = rows_accounted_for(settings, RIDES)
    assert conserved.passed, conserved.observed
    for table in (RIDES.admitted, RIDES.raw, RIDERS):
        kept = versions_readable(settings, table, datetime.now(UTC))
        assert kept.passed, kept.observed
        assert "the oldest that is kept" in kept.observed
        assert "a shorter retention, or an erasure, took those before" in kept.observed
        with pytest.raises(VersionNotAvailable, match="an erasure, took those before"):
            resolve_version(settings.lake(), table, 0)
    assert set(pending_days(settings.lake(), TAXI)) == {"taxi/riders", "taxi/totals"}


def test_m014_a_person_leaves_every_table_and_every_version(settings: Settings) -> None:
    fill(settings)

    seen = erase_of(settings, *ALL_OF_ANN, dry_run=True)
    assert not settings.lake().exists(ERASURES)
    done = erase_of(settings, *ALL_OF_ANN)

    assert {each.place: each.rows for each in seen.places} == {
        "taxi/rides": 2,
        "taxi/rides_late": 1,
        "taxi/rides_quarantine": 2,
        "taxi/rides_raw": 4,
        "taxi/riders": 3,
        "taxi/riders_undelivered": 1,
        "taxi/riders_replays": 1,
        "removed/20260301T000000Z/taxi/rides": 2,
        "removed/20260301T000000Z/taxi/rides_raw": 4,
        "staged": 0,
    }
    assert done.places == seen.places
    check_erased(settings)
    assert any("source of 'taxi/rides'" in sentence for sentence in done.left)


def test_m014_the_record_says_who_and_when_and_not_whose(settings: Settings) -> None:
    fill(settings)
    erase_of(settings, *ALL_OF_ANN)

    record = rows(settings, ERASURES)
    assert {row["state"] for row in record} == {"begun", "done"}
    assert {(row["by"], row["because"], row["run"]) for row in record} == {("dpo", "DSR-1", "r")}
    [person] = {tuple(row["person"]) for row in record}
    assert [text.partition(":")[0] for text in person] == ["home.mail", "rider", "tags"]
    assert person_of(TAXI, ALL_OF_ANN).digests(settings.state) == [*person]
    assert (settings.state / "erasure.salt").stat().st_mode & 0o077 == 0
    assert person_of(TAXI, ALL_OF_ANN).digests(settings.state / "elsewhere") != [*person]


def test_m014_a_value_that_json_escapes_is_found(settings: Settings) -> None:
    fill(settings)
    done = erase_of(settings, f"rider={BOB}")

    assert {each.place: each.rows for each in done.places}["taxi/rides_raw"] == 1
    assert sorted(row["ride"] for row in rows(settings, RIDES.admitted)) == [1, 3, 4]
    assert rows_accounted_for(settings, RIDES).passed


def test_m014_an_id_of_numbers_takes_only_rows_whose_it_is(settings: Settings) -> None:
    fill(settings)
    done = erase_of(settings, "ride=2")

    # Not those whose fare is 2, nor the text of a file that was replaced and begins with it.
    assert {each.place: each.rows for each in done.places} == {
        "taxi/rides": 1,
        "taxi/rides_raw": 1,
        "taxi/rides_quarantine": 2,
        "removed/20260301T000000Z/taxi/rides": 1,
        "removed/20260301T000000Z/taxi/rides_raw": 1,
    }


def test_m014_nobody_found_is_recorded_too(settings: Settings) -> None:
    fill(settings)
    done = erase_of(settings, "rider=nobody")

    assert done.places == []
    assert [row["rows"] for row in rows(settings, ERASURES)] == [0, 0]


STEPS = (
    "rivermark.lake.erasure.DeltaCommitter.replace_files",
    "rivermark.lake.erasure.keep_from",
    "rivermark.lake.erasure.make_checkpoint",
    "rivermark.lake.erasure.delete_with_sidecar",
    "rivermark.backfill.erasure.erase.clean_log",
    "rivermark.backfill.erasure.erase.cut_log",
    "rivermark.backfill.erasure.record.append_rows",
    "rivermark.backfill.erasure.erase.add_pending",
    "os.link",
)


@pytest.mark.parametrize("each", [19, pytest.param(1, marks=pytest.mark.long)])
def test_m014_a_kill_before_any_step_is_finished_by_a_repetition(tmp_path: Path, each: int) -> None:
    made = Settings(home=tmp_path / "made")
    fill(made, archives=False)
    killer = Killer()
    for step in STEPS:
        killer.before(step)

    with killer.patch.context():
        is_killed, due = True, 1
        while is_killed:
            settings = Settings(home=tmp_path / f"of{due}")
            shutil.copytree(made.home, settings.home)
            is_killed = killer.kills(due, partial(erase_of, settings, *ALL_OF_ANN))
            conserved = rows_accounted_for(settings, RIDES)
            assert conserved.passed, f"{due}: {conserved.observed}"
            erase_of(settings, *ALL_OF_ANN)
            check_erased(settings)
            due += each
    assert due > 40


def test_m014_a_stream_that_runs_holds_its_tables(settings: Settings) -> None:
    fill(settings)
    with (
        Lease(settings.state, COUNTED.name).acquire("other"),
        pytest.raises(StreamAlreadyRunning, match="taxi/totals"),
    ):
        erase_of(settings, *ALL_OF_ANN)
    assert len(rows(settings, RIDES.raw)) == 6


def _plan(settings: Settings, stream: AnyStream, *, planned: int, done: int) -> None:
    from rivermark.runtime.checkpoint.generation import open_generation

    generation = open_generation(settings.lake(), stream, 1)
    folder = Path(settings.lake().checkpoint(stream.name, generation.number))
    for name, batches in (("offsets", planned), ("commits", done)):
        (folder / name).mkdir(parents=True)
        for batch in range(batches):
            (folder / name / str(batch)).write_text("v1\n{}\n-\n")


def test_m014_a_batch_that_is_not_finished_would_bring_rows_back(settings: Settings) -> None:
    fill(settings)
    for stream in (RIDES, BY_RIDER, COUNTED):
        shutil.rmtree(settings.lake().path(f"{stream.tables[0].name}"))
    append(settings, RIDES.admitted, [_event(1, ANN)])
    _plan(settings, COUNTED, planned=2, done=1)
    with pytest.raises(
        RivermarkError, match=r"has not finished its batch 1; .*rivermark run taxi/t"
    ):
        erase_of(settings, *ALL_OF_ANN)
    assert len(rows(settings, RIDES.admitted)) == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "name the person by a value"),
        (("rider",), "COLUMN=VALUE"),
        (("rider=",), "COLUMN=VALUE"),
        (("ridr=a",), "did you mean 'rider'"),
        (("rides=1",), "neither personal nor a key"),
        (("payload=a",), "neither personal nor a key"),
    ],
)
def test_m014_what_names_no_person_is_refused(given: tuple[str, ...], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        person_of(TAXI, given)


def test_m014_a_table_with_constraints_is_named(settings: Settings) -> None:
    fill(settings)
    path = settings.lake().path(RIDERS)
    DeltaTable(path).alter.add_constraint({"positive": "rides > 0"})
    with pytest.raises(RivermarkError, match="constraints or features that another tool gave it"):
        erase_of(settings, *ALL_OF_ANN)
    assert len(rows(settings, RIDES.raw)) == 6
