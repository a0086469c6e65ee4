"""A replay put in the place of what was admitted: as if the rules of now had been those of then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pytest

import rivermark.lake.replace
from rivermark import Ingest, Rule, Table, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.erasure.record import note_places
from rivermark.backfill.ingest_replay import in_place
from rivermark.backfill.ingest_replay.run import IngestReplay, replay_ingest
from rivermark.backfill.ingest_replay.undo import undo_replacement
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.pending import open_causes
from rivermark.backfill.registry import newest_records
from rivermark.backfill.result import Reprocessing
from rivermark.backfill.retake import retake
from rivermark.ingest.admission import Admission
from rivermark.ingest.plan import open_source
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.delta import dataset_of, delta_table, read_rows
from rivermark.model.errors import RivermarkError, VersionNotAvailable, WrongUse
from rivermark.model.sink import Origin
from rivermark.model.source import PlannedSplit, Split
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.spark.helpers.crashes import CrashError
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, MINUTE, READING, by_value, reading, readings
from tests.unit.ingest.test_admission_by_tasks import InPlace

DAY, LAST = date(2024, 3, 1), date(2024, 3, 3)
TWO_DAYS = 60 * 24 * 2
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
THEN = readings()
NOW = readings(
    lateness=2 * MINUTE,
    rules=(
        Rule("warm", "temperature > 50", "quarantine", "Above 50 degrees."),
        Rule("freezing", "temperature < 5", "flag", "Below five."),
    ),
)
"""By these rules rows move each way, and one has another flag."""
TIMES = ("_ingested_at", "_landed_at", "_watermark", "_late_by_ms")
"""A late row that stays late keeps the watermark that it missed."""
LEDGER = ("file", "rows", "admitted", "late", "quarantined", "status", "replaced")
State = dict[str, list[tuple[object, ...]]]


def land(landing: Landing) -> None:
    landing.put(f"{FOLDER}/1.json", reading(4), reading(1, "s2", 60), reading(2, "s3", 2000), "{")
    landing.put(f"{FOLDER}/2.json", reading(5, "s1", 3), reading(0.5, "s2"), reading(2.5, "s3"))
    landing.put(f"{FOLDER}/3.json", reading(6, "s4"), reading(TWO_DAYS, "s5"))
    landing.put(f"{FOLDER}/it's.json", reading(TWO_DAYS + 1, "s'6", 70))


def admit(settings: Settings, ingest: Ingest) -> None:
    """Admit each file as a batch, without an engine."""
    lake = settings.lake()
    source = open_source(lake, settings.landing_root, ingest)
    origin = Origin(ingest.name, 0, BEGAN, "run")
    admission = Admission(cast(Any, None), lake, ingest, source, origin)
    for batch, split in enumerate(source.discover().ready):
        assert isinstance(split, Split)
        planned = PlannedSplit(**vars(split), batch=batch, landed_at=split.modified_at)
        admission.admit([planned], batch)


def context_of(settings: Settings, ingest: Ingest) -> BackfillContext:
    return BackfillContext(
        settings=settings, topology=Topology([ingest]), spark=lambda: cast(Any, None), run_id="x"
    )


def put(settings: Settings, ingest: Ingest = NOW, last: date = LAST) -> IngestReplay:
    context = context_of(settings, ingest)
    return replay_ingest(context, ingest.name, DAY, last, replacing=True)


def undo(settings: Settings, name: str) -> Reprocessing | None:
    return undo_replacement(context_of(settings, THEN), THEN, name)[0]


def rows(settings: Settings, table: Table, *columns: str) -> list[tuple[object, ...]]:
    found = read_rows(dataset_of(delta_table(settings.lake().path(table))), columns=[*columns])
    values = (tuple(row.values()) for row in found.to_pylist())
    return sorted(values, key=lambda row: repr(by_value(row)))


def state(settings: Settings) -> State:
    """All that is decided, but for when it was."""
    tables = {
        table.name: rows(settings, table, *(n for n in table.schema.fieldNames() if n not in TIMES))
        for table in (THEN.admitted, THEN.late, THEN.quarantine, THEN.raw)
    }
    return tables | {"ledger": rows(settings, INGEST_FILES, *LEDGER)}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def landing(settings: Settings) -> Landing:
    return Landing(Path(settings.landing_root))


def oracle(folder: Path, ingest: Ingest = NOW) -> State:
    """The tables of a lake in which the rules of now were those of then."""
    settings = Settings(home=folder / "oracle")
    land(Landing(Path(settings.landing_root)))
    admit(settings, ingest)
    return state(settings)


def crash(*_: object, **__: object) -> None:
    raise CrashError("killed")


def killed_after(patch: pytest.MonkeyPatch, tables: int) -> None:
    """Let a replacement end after so many of its tables, the ledger being the last one."""
    left = iter([rivermark.lake.replace.replace_rows] * tables)

    def crashing(*args: Any) -> None:
        replace_rows: Callable[..., None] = next(left, crash)
        replace_rows(*args)

    patch.setattr(in_place, "replace_rows", crashing)


def test_killed_between_any_two_steps_it_is_as_if_the_rules_had_been_those_of_now(
    settings: Settings, landing: Landing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(landing)
    admit(settings, THEN)
    before, expected = state(settings), oracle(tmp_path)
    assert {name for name in before if before[name] != expected[name]} == before.keys() - {
        THEN.raw.name
    }

    # Each run comes one table further than the one before.
    for tables in (0, 1, 1, 1):
        with monkeypatch.context() as patch:
            killed_after(patch, tables)
            with pytest.raises(CrashError):
                put(settings)
    for step in ("register", "recompute_downstream"):
        with monkeypatch.context() as patch:
            patch.setattr(in_place, step, crash)
            with pytest.raises(CrashError):
                put(settings)
    report = put(settings)

    assert (report.rows_changed, report.done) == (0, None)
    assert state(settings) == expected
    assert rows_accounted_for(settings, NOW).passed
    assert open_causes(settings.lake()) == set()
    (name,) = {record.id for record in newest_records(settings.lake(), THEN.name)}

    for tables in (0, 1, 1, 1):
        with monkeypatch.context() as patch:
            killed_after(patch, tables)
            with pytest.raises(CrashError):
                undo(settings, name)
    done = undo(settings, name)

    assert done is not None
    assert done.because == name
    assert state(settings) == before
    assert rows_accounted_for(settings, THEN).passed
    with pytest.raises(RivermarkError, match="has already been undone"):
        undo(settings, name)
    with pytest.raises(RivermarkError, match="is an undo"):
        undo(settings, done.id)


def test_raw_rows_that_are_many_are_decided_by_tasks_alike(
    settings: Settings, landing: Landing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(landing)
    admit(settings, THEN)
    monkeypatch.setattr("rivermark.ingest.admission.DRIVER_BYTES", 0)
    monkeypatch.setattr("rivermark.ingest.admission.Executors", lambda _, parser: InPlace(parser))

    put(settings)
    monkeypatch.undo()
    assert state(settings) == oracle(tmp_path)


def test_days_that_were_not_asked_for_stay(settings: Settings, landing: Landing) -> None:
    land(landing)
    admit(settings, THEN)
    report = put(settings, last=DAY)

    turns = {(turn.before, turn.after): turn.rows for turn in report.turns}
    assert turns == {
        ("admitted", "admitted"): 1,
        ("admitted", "quarantined: warm"): 1,
        ("late", "admitted"): 1,
        ("quarantined: too_hot", "quarantined: warm"): 1,
    }
    # The warm reading of the third day was not asked for.
    assert ("s'6",) in rows(settings, THEN.admitted, "sensor")
    assert put(settings).rows_changed == 1
    assert ("s'6",) not in rows(settings, THEN.admitted, "sensor")


def test_an_undo_is_refused_where_its_rows_were_replaced_or_changed_since(
    settings: Settings, landing: Landing
) -> None:
    land(landing)
    admit(settings, THEN)
    first, second = put(settings, last=DAY), put(settings)
    assert first.done is not None
    assert second.done is not None
    with pytest.raises(RivermarkError, match=r"no rows of .* were replaced as 'x'; the newest: 2"):
        undo(settings, "x")
    # The later one is of another batch, so either may be undone first.
    undo(settings, first.done.id)
    again = put(settings, readings(rules=()))
    assert again.done is not None
    with pytest.raises(RivermarkError, match=f"replaced again by {again.done.id}; undo that first"):
        undo(settings, second.done.id)
    delta_table(settings.lake().path(THEN.admitted)).delete("sensor = 's1'")
    with pytest.raises(RivermarkError, match="have been changed since"):
        undo(settings, again.done.id)


def test_an_undo_is_refused_where_the_version_before_is_gone(
    settings: Settings, landing: Landing
) -> None:
    land(landing)
    admit(settings, THEN)
    report = put(settings)
    assert report.done is not None
    table = delta_table(settings.lake().path(THEN.admitted))
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    with pytest.raises(VersionNotAvailable, match="Replay the days of 'test/readings' instead"):
        undo(settings, report.done.id)


def test_late_rows_that_were_merged_stay_merged(settings: Settings, landing: Landing) -> None:
    land(landing)
    landing.put(f"{FOLDER}/5.json", reading(60 * 24 * 4))
    admit(settings, THEN)
    merge_late(context_of(settings, THEN), [THEN])
    late = rows(settings, THEN.late, "_file", "_row")
    assert len(late) == 2

    colder = readings(rules=(replace(READING.rules[1], broken="temperature < 21"),))
    assert put(settings, colder).rows_changed

    assert rows(settings, THEN.late, "_file", "_row") == late
    admitted = rows(settings, THEN.admitted, "_file", "_row", "flags")
    flags = {(file, row): flags for file, row, flags in admitted}
    assert [flags[file, row] for file, row in late] == [["freezing"], ["freezing"]]
    assert rows_accounted_for(settings, colder).passed
    assert merge_late(context_of(settings, colder), [colder]).rows == 0


def test_rows_that_have_become_late_are_merged_by_the_next_merge(
    settings: Settings, landing: Landing
) -> None:
    land(landing)
    landing.put(f"{FOLDER}/5.json", reading(60 * 24 * 4))
    loose = readings(lateness=60 * MINUTE)
    admit(settings, loose)
    merge_late(context_of(settings, loose), [loose])
    admitted = len(rows(settings, THEN.admitted, "_row"))

    put(settings, THEN)
    assert len(rows(settings, THEN.admitted, "_row")) == admitted - 2
    assert len(rows(settings, THEN.late, "_row")) == 2
    assert merge_late(context_of(settings, THEN), [THEN]).rows == 2


def test_a_contract_that_gained_a_column_fills_it_from_raw(
    settings: Settings, landing: Landing
) -> None:
    land(landing)
    landing.put(f"{FOLDER}/5.json", reading(TWO_DAYS + 2, note="n"))
    without = readings(fields=tuple(f for f in READING.fields if f.name != "note"))
    admit(settings, without)

    report = put(settings, THEN)
    assert report.rows_changed == 1
    assert ("s1", "n") in rows(settings, THEN.admitted, "sensor", "note")
    assert report.done is not None
    undo(settings, report.done.id)
    assert ("s1", None) in rows(settings, THEN.admitted, "sensor", "note")


def test_erased_rows_stay_gone_and_count_as_what_they_were(
    settings: Settings, landing: Landing
) -> None:
    land(landing)
    admit(settings, THEN)
    lake, place = settings.lake(), ("1.json", 0, 1)
    note_places(lake, "e", {THEN.name: {"raw": {place}, "admitted": {place}}})
    for table in (THEN.raw, THEN.admitted):
        delta_table(lake.path(table)).delete("_file = '1.json' AND _row = 1")
    assert rows_accounted_for(settings, THEN).passed

    assert put(settings).replayed.rows == 9
    assert ("1.json", 1) not in rows(settings, THEN.admitted, "_file", "_row")
    assert rows_accounted_for(settings, NOW).passed


def test_a_file_that_was_read_again_is_put_back(settings: Settings, landing: Landing) -> None:
    land(landing)
    admit(settings, THEN)
    before = state(settings)
    path = landing.root / FOLDER / "it's.json"
    path.write_text(f"{reading(TWO_DAYS + 1, 'new', 1)}\n{reading(TWO_DAYS + 2, 'other', 2)}\n[\n")

    done = retake(context_of(settings, THEN), THEN, "it's.json")
    assert (done.outcome.rows, done.outcome.admitted, done.outcome.quarantined) == (3, 2, 1)
    assert {("new",), ("other",)} < {*rows(settings, THEN.admitted, "sensor")}
    assert ("s'6",) not in rows(settings, THEN.admitted, "sensor")
    assert rows_accounted_for(settings, THEN).passed
    undo(settings, done.id)
    assert state(settings) == before


def test_a_replacement_is_by_what_is_declared(settings: Settings) -> None:
    with pytest.raises(WrongUse, match="declare that lateness first"):
        replay_ingest(
            context_of(settings, NOW), NOW.name, DAY, DAY, lateness_seconds=5, replacing=True
        )
