"""R10: a target outside the lake that lost rows is told by a check, an empty one at the start."""

from __future__ import annotations

import re
import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.backfill.erasure.person import Person
from rivermark.lake.system_tables import rows_of
from rivermark.model.errors import CheckpointIncompatible
from rivermark.sinks import FileSink, PostgresAppend, PostgresUpsert
from rivermark.sinks.file_drafts import Format
from rivermark.sinks.output import replace_in_others
from tests.unit.sinks.conftest import DAY, FARES, NOON, connected, context, fares
from tests.unit.sinks.target_world import TIMED, World

APPEND = PostgresAppend(table="fares", database="$TEST_DATABASE")
UPSERT = PostgresUpsert(
    table="fares", database="$TEST_DATABASE", version="at", deleted="coalesce(gone, fare < 0)"
)
pytestmark = [
    pytest.mark.usefixtures("new_schema"),
    pytest.mark.filterwarnings("ignore:<psycopg:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rivermark.monitor.checks.row_checks.PAUSE_SECONDS", 0.0)


def sql(text: str) -> None:
    with connected() as connection:
        connection.execute(text)


TWO_DAYS = pa.concat_tables(
    [fares((1, 1.0), (2, 2.0)), fares((3, 3.0), at=NOON + timedelta(days=1))]
)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("DELETE FROM fares WHERE ride = 1", "3 rows at batch 1, 4 by the table.*2024-03-01: 2 ro"),
        ("INSERT INTO fares VALUES (9, now(), 1)", "5 rows at batch 1, 4 by the table"),
        ("TRUNCATE fares", "0 rows at batch 1, 4 by the table"),
        ("UPDATE fares SET at = at - interval '1 day' WHERE ride = 3", "2024-02-29|2024-03-01: 4"),
        ("UPDATE rivermark_batches SET batch = 0", "says that it holds batch 0, and batch 1 was"),
        ("DROP TABLE fares", "says that it holds no batch, and batch 1 was written there"),
        ("DROP TABLE rivermark_batches", "says that it holds no batch"),
    ],
)
def test_r10_rows_that_a_database_lost_or_gained_are_told(
    tmp_path: Path, harm: str, said: str
) -> None:
    world = World(tmp_path, APPEND)
    world.write(TWO_DAYS, fares((4, 4.0)))
    healthy = world.check()
    assert healthy.passed, healthy.observed
    assert "4 rows at batch 1, 4 by the table" in healthy.observed

    sql(harm)
    ill = world.check()

    assert not ill.passed
    assert ill.severity == "critical"
    assert re.search(said, ill.observed), ill.observed
    assert "rivermark reset test/fares" in ill.observed


def test_r10_an_emptied_table_of_latest_rows_is_refused_at_the_start(tmp_path: Path) -> None:
    world = World(tmp_path, UPSERT)
    world.write(fares((1, 1.0), (2, 2.0)), fares((1, 1.5), at=NOON + timedelta(hours=1)))
    assert world.check().passed, world.check().observed
    sql("DELETE FROM fares WHERE ride = 2")
    assert "1 rows at batch 1, 2 by the table" in world.check().observed
    world.write(fares((5, 5.0)))

    sql("TRUNCATE fares")

    with pytest.raises(CheckpointIncompatible, match=r"0 rows at batch 2, 3 by .* rivermark reset"):
        world.write(fares((3, 3.0)))


def test_r10_a_table_of_latest_rows_whose_keys_were_all_deleted_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path, UPSERT)
    gone = {"ride": 1, "at": NOON + timedelta(hours=1), "fare": None, "gone": True}
    world.write(fares((1, 1.0)), rows_of(FARES, [gone]))
    assert "0 rows at batch 1, 0 by the table" in world.check().observed
    world.write(fares((2, 2.0)))
    assert world.check().passed
    assert "1 rows at batch 2, 1 by the table" in world.check().observed


def test_r10_a_recompute_a_refused_row_and_a_later_sink_are_no_loss(tmp_path: Path) -> None:
    sql("CREATE TABLE fares (ride bigint, at timestamptz, fare float8 CHECK (fare < 5), gone bool)")
    world = World(tmp_path, APPEND)
    world.write(TWO_DAYS, fares((4, 9.0)))
    assert world.check().passed
    assert "3 rows at batch 1, 4 by the table, 1 not delivered" in world.check().observed

    later = PostgresAppend(table="later", database="$TEST_DATABASE")
    both = World(tmp_path, APPEND, later)
    both.batch = 2
    both.write(fares((5, 1.0)))
    result = both.check()
    assert result.passed
    assert "table later of" in result.observed
    assert "1 rows at batch 2, not compared" in result.observed


def test_r10_a_database_that_is_away_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, APPEND)
    world.write(TWO_DAYS)
    monkeypatch.setenv("TEST_DATABASE", "host=127.0.0.1 port=1")
    monkeypatch.setattr("rivermark.sinks.postgres.declaration.CHECK_PATIENCE", 0.1)

    away = world.check()

    assert (away.passed, away.severity) == (False, "warning")
    assert "could not be asked" in away.observed


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_r10_files_that_are_gone_are_told(tmp_path: Path, kind: Format) -> None:
    sink = FileSink(format=kind)
    world = World(tmp_path, sink)
    world.write(TWO_DAYS, fares(), fares((4, 4.0)))
    assert world.check().passed, world.check().observed
    assert "4 rows at batch 2, 4 by the table" in world.check().observed
    folder = Path(world.lake.root) / "exports" / TIMED.name
    replace_in_others(
        world.lake, world.output, world.origin, fares((1, 1.0), (2, 2.0), (4, 4.0)), [DAY], "again"
    )
    assert world.check().passed, world.check().observed

    shutil.rmtree(folder / "day=2024-03-02")
    assert "3 rows at batch 2, 4 by the table" in world.check().observed
    shutil.rmtree(folder)
    assert "says that it holds no batch" in world.check().observed


def test_m014_targets_from_which_a_person_was_erased_hold_what_their_table_has(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, APPEND)
    world.write(TWO_DAYS)
    person = Person({"ride": ("1",)}, {"ride": frozenset({"ride"})})
    DeltaTable(world.lake.path(TIMED)).delete("ride = 1")
    APPEND.erase(context(world.lake, TIMED), person.values, dry_run=False)
    assert world.check().passed, world.check().observed
