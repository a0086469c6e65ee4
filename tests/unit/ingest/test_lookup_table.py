"""The table of a lookup: the newest version of each key, whatever comes in which order."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from rivermark import Contract, Field
from rivermark.ingest import lookup_table
from rivermark.ingest.lookup_table import LookupTable
from rivermark.ingest.plan import plan_table
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import open_table
from rivermark.lake.system_tables import rows_of
from rivermark.lake.table_rows import TableRows
from rivermark.model.errors import CheckpointIncompatible
from rivermark.settings import Settings
from tests.unit.conftest import Put
from tests.unit.model.declared import ingest

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LOOKUP = ingest("test/lookup", kind="lookup", keys=("id",), lateness=None)


def version(key: int, hour: int, batch: int, file: str, row: int = 1) -> dict[str, Any]:
    place = {"_file": file, "_ingest_batch": batch, "_row": row, "flags": []}
    return {"id": key, "at": NOON + hour * HOUR, **place}


@pytest.fixture
def lookup(settings: Settings) -> LookupTable:
    for table in LOOKUP.tables:
        create_table(settings.lake(), table)
    return LookupTable(settings.lake(), LOOKUP)


def merge(lookup: LookupTable, *versions: dict[str, Any], files: tuple[str, ...] = ("a",)) -> None:
    lookup.merge(rows_of(LOOKUP.admitted, list(versions)), files, {"batch": 0})


def held(settings: Settings) -> dict[int, tuple[int, str, int]]:
    """Hours after noon, file and line of the row of each key; a repeated key fails."""
    rows = open_table(settings.lake(), LOOKUP.admitted).to_table().to_pylist()
    by_key = {row["id"]: ((row["at"] - NOON) // HOUR, row["_file"], row["_row"]) for row in rows}
    assert len(by_key) == len(rows)
    return by_key


def test_the_newest_version_stays_in_whatever_order_they_come(
    settings: Settings, lookup: LookupTable
) -> None:
    merge(lookup, version(1, 2, 0, "a"), version(1, 1, 0, "a", 2), version(2, 0, 0, "a", 3))
    merge(lookup, version(1, 1, 1, "b"), version(2, 1, 1, "b", 2), files=("b",))

    assert held(settings) == {1: (2, "a", 1), 2: (1, "b", 2)}


def test_of_equal_times_the_one_that_landed_last_stays(
    settings: Settings, lookup: LookupTable
) -> None:
    # Within a batch the order of files is that in which they landed, not that of their names.
    merge(lookup, version(1, 0, 0, "z"), version(1, 0, 0, "a"), files=("z", "a"))
    assert held(settings) == {1: (0, "a", 1)}

    merge(lookup, version(1, 0, 1, "b"), version(1, 0, 1, "b", 2), files=("b",))
    merge(lookup, version(1, 0, 0, "z"), files=("z",))
    assert held(settings) == {1: (0, "b", 2)}


def test_a_repeated_batch_leaves_no_commit(settings: Settings, lookup: LookupTable) -> None:
    versions = [version(n, 0, 0, "a", n) for n in range(1, 50)]
    merge(lookup, *versions)
    path = settings.lake().path(LOOKUP.admitted)
    before = sorted(p.name for p in (settings.home / path).glob("_delta_log/*.json"))
    merge(lookup, *versions)

    assert sorted(p.name for p in (settings.home / path).glob("_delta_log/*.json")) == before
    assert len(held(settings)) == 49


def test_a_table_made_again_has_the_files_of_a_batch_in_the_order_of_their_landing(
    settings: Settings, put: Put, lookup: LookupTable
) -> None:
    for landed, file in enumerate("za"):
        plan = {"arrival": 0, "name": file, "path": file, "modified_at": NOON + landed * HOUR}
        put(plan_table(LOOKUP), plan)
    put(LOOKUP.versions, version(1, 0, 0, "z"), version(1, 0, 0, "a"), version(2, 0, 0, "z", 2))

    lookup.rebuild({"retake": "z"})

    assert held(settings) == {1: (0, "a", 1), 2: (0, "z", 2)}


def test_a_table_whose_columns_are_named_like_those_of_the_plan_is_made_again(
    settings: Settings, put: Put
) -> None:
    fields = (Field("name", "string", required=True), Field("path", "string"))
    named = replace(LOOKUP, name="test/named", keys=("name",), contract=Contract(fields=fields))
    for table in (*named.tables, plan_table(named)):
        create_table(settings.lake(), table)
    place = {"_file": "a", "_ingest_batch": 0, "flags": [], "landed_at": NOON}
    put(named.versions, *({"name": "n", "path": str(row), "_row": row, **place} for row in (1, 2)))

    LookupTable(settings.lake(), named).rebuild({"retake": "a"})

    [row] = open_table(settings.lake(), named.admitted).to_table().to_pylist()
    assert (row["name"], row["path"]) == ("n", "2")


def test_a_batch_that_is_merged_while_the_table_is_made_again_stays(
    settings: Settings, put: Put, lookup: LookupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_table(settings.lake(), plan_table(LOOKUP))
    put(LOOKUP.versions, version(1, 0, 0, "a"))

    @contextmanager
    def after_the_stream(path: str) -> Iterator[None]:
        monkeypatch.undo()
        put(LOOKUP.versions, version(2, 0, 1, "b"))
        merge(lookup, version(2, 0, 1, "b"), files=("b",))
        with commit_lock(path):
            yield

    monkeypatch.setattr("rivermark.ingest.lookup_table.commit_lock", after_the_stream)
    lookup.rebuild({"retake": "a"})

    assert held(settings) == {1: (0, "a", 1), 2: (0, "b", 1)}


def test_rows_of_events_are_no_lookup(settings: Settings, put: Put, lookup: LookupTable) -> None:
    put(LOOKUP.admitted, version(1, 0, 0, "a"), version(1, 1, 0, "a", 2))

    with pytest.raises(CheckpointIncompatible, match="rivermark reset test/lookup --with-tables"):
        LookupTable(settings.lake(), LOOKUP)


@pytest.mark.parametrize("few", [1_000, 0], ids=["by keys", "between their bounds"])
def test_of_a_large_table_the_keys_that_changed_are_held_and_their_files_opened(
    settings: Settings, lookup: LookupTable, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(lookup_table, "FEW_KEYS", few)
    for file in range(5):
        keys = range(1_000 * file, 1_000 * file + 1_000)
        merge(lookup, *(version(key, 0, file, "a", key + 1) for key in keys))
    opened: list[int] = []
    held_rows: list[int] = []
    chosen, present = TableRows._opened, LookupTable._present

    def counted(rows: TableRows, indexes: Iterable[int]) -> Any:
        opened.append(len(indexes := [*indexes]))
        return chosen(rows, indexes)

    def measured(table: LookupTable, *args: Any) -> Any:
        held_rows.append((found := present(table, *args)).num_rows)
        return found

    monkeypatch.setattr(TableRows, "_opened", counted)
    monkeypatch.setattr(LookupTable, "_present", measured)
    merge(lookup, version(1_500, 1, 9, "b"), version(1_600, -1, 9, "b", 2), files=("b",))

    assert (held_rows, opened) == ([2], [1])
    rows = held(settings)
    assert len(rows) == 5_000
    assert (rows[1_500], rows[1_600]) == ((1, "b", 1), (0, "a", 1_601))


@pytest.mark.parametrize("few", [1_000, 0], ids=["by keys", "between their bounds"])
def test_versions_whose_texts_are_views_are_compared(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """As the parser's columns are, and those of files that delta-rs has merged."""
    monkeypatch.setattr(lookup_table, "FEW_KEYS", few)
    named = replace(LOOKUP, contract=Contract(fields=(Field("id", "string", required=True),)))
    for table in named.tables:
        create_table(settings.lake(), table)
    lookup = LookupTable(settings.lake(), named)
    for batch, keys in enumerate(("abc", "b", "c")):
        place = {"_file": "a", "_row": batch, "_ingest_batch": batch, "landed_at": NOON}
        rows = rows_of(named.admitted, [{"id": key, **place} for key in keys])
        views = rows.set_column(0, "id", rows["id"].cast(pa.string_view()))
        lookup.merge(views, ["a"], {})
    kept = open_table(settings.lake(), named.admitted).to_table().to_pylist()
    assert {row["id"]: row["_row"] for row in kept} == {"a": 0, "b": 1, "c": 2}
