"""Files that tasks have written are committed once, all of them, by one log entry."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType
from pyarrow import fs

from rivermark.lake.append import data_file
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.append.table_files import TableFiles, files_of
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.vacuum import vacuum
from rivermark.lake.schema import create_table
from rivermark.lake.snapshot import row_count
from rivermark.lake.statistics import largest
from rivermark.model.errors import LeaseLost, RivermarkError
from rivermark.model.sink import Origin, owned
from tests.kills import Killer
from tests.unit.lake.conftest import NOON, RIDES, ids, rides

HOUR = timedelta(hours=1)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
Adds = list[dict[str, Any]]


@pytest.fixture(params=["a log entry of ours", "delta-rs"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of a commit: what the committer does not serve is left to delta-rs."""
    if request.param == "delta-rs":
        monkeypatch.setattr(DeltaCommitter, "files", lambda _: None)
        monkeypatch.setattr(DeltaCommitter, "append_files", lambda *_: False)
    return str(request.param)


def writer(lake: Lake, check: Callable[[], None] = owned) -> TableWriter:
    """A writer as a run opens it."""
    return TableWriter(lake, RIDES, Origin("test/rides", 0, LONG_AGO, "run", check))


def files(of: TableWriter) -> TableFiles:
    found = of.files()
    assert found is not None
    return found


def written(of: TableWriter, *numbers: int) -> Adds:
    """A file for each ride, an hour after the one before."""
    return [add for n in numbers for add in files(of).write(rides(n, at=NOON + n * HOUR))]


def on_disk(lake: Lake) -> int:
    return len(list(Path(lake.path(RIDES)).glob("*.parquet")))


def test_files_are_one_commit_in_the_order_of_time_also_for_the_next_run(
    lake: Lake, way: str
) -> None:
    first = writer(lake)
    adds = written(first, 3, 1, 2)
    assert first.append_files_once(adds, 0, metadata={"watermark": "of 0"})

    log = CommitLog(lake.path(RIDES))
    newest = log.latest()
    assert newest is not None
    assert (newest.version, newest.metadata["batch"]) == (1, 0)
    assert newest.metadata["watermark"] == "of 0"
    assert (first.rows_written(0), ids(lake), row_count(lake, RIDES)) == (3, [1, 2, 3], 3)
    assert largest(lake, RIDES, "at") == NOON + 3 * HOUR
    entry = Path(lake.path(RIDES), "_delta_log", f"{1:020d}.json").read_text().splitlines()
    named = [json.loads(line)["add"]["path"] for line in entry if '"add"' in line]
    assert named == [adds[n]["add"]["path"] for n in (1, 2, 0)]
    again = writer(lake)
    assert not again.append_files_once(written(again, 3, 1, 2), 0)
    assert not again.append_files_once(adds, 0), "those of the commit itself"
    assert again.append_files_once(written(again, 4), 1)
    assert again.append_once(rides(5), 2)
    assert ids(lake) == [1, 2, 3, 4, 5]


def test_no_files_are_a_commit_without_rows(lake: Lake, way: str) -> None:
    assert writer(lake).append_files_once([], 0)
    assert writer(lake).has(0)
    assert DeltaTable(lake.path(RIDES)).version() == 1


def test_a_run_that_lost_its_lease_commits_nothing_and_leaves_nothing(lake: Lake, way: str) -> None:
    def lost() -> None:
        raise LeaseLost("taken over")

    paused = writer(lake, lost)
    with pytest.raises(LeaseLost):
        paused.append_files_once(written(paused, 1, 2), 0)
    assert (ids(lake), on_disk(lake)) == ([], 0)


def test_a_fence_that_comes_between_check_and_commit_holds(lake: Lake, way: str) -> None:
    state = {"owned": True}

    def check() -> None:
        if not state["owned"]:
            raise LeaseLost("taken over")
        fence_at_once()

    def fence_at_once() -> None:
        state["owned"] = False
        table = DeltaTable(lake.path(RIDES))
        table.alter.set_table_properties({"rivermark.lease.x": "2"}, raise_if_not_exists=False)

    paused = writer(lake, check)
    with pytest.raises(LeaseLost):
        paused.append_files_once(written(paused, 1), 0)
    assert (ids(lake), on_disk(lake)) == ([], 0)


def test_a_column_that_is_added_while_tasks_write_stays_empty(lake: Lake, way: str) -> None:
    one = writer(lake)
    adds = written(one, 1, 2)
    DeltaTable(lake.path(RIDES)).alter.add_columns([Field("tip", PrimitiveType("double"))])
    assert one.append_files_once(adds, 0)

    assert ids(lake) == [1, 2]
    assert delta_table(lake.path(RIDES)).to_pyarrow_table()["tip"].to_pylist() == [None, None]


def test_a_table_that_is_given_a_constraint_meanwhile_refuses_them(lake: Lake, way: str) -> None:
    one = writer(lake)
    adds = written(one, 1)
    DeltaTable(lake.path(RIDES)).alter.add_constraint({"positive": "id > 1"})

    assert writer(lake).files() is None
    with pytest.raises(RivermarkError, match="'test/rides' was given constraints"):
        one.append_files_once(adds, 0)
    assert (ids(lake), on_disk(lake)) == ([], 0)


def test_a_full_disk_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    one = writer(lake)
    adds = written(one, 1, 2)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            one.append_files_once(adds, 0)
    assert (ids(lake), on_disk(lake)) == ([], 0)


def test_a_kill_before_any_step_leaves_a_batch_that_can_be_written_again(
    tmp_path: Path, killer: Killer
) -> None:
    killer.before("rivermark.lake.append.table_files.write_data_file")
    killer.before("rivermark.lake.append.delta_commit.put_checksum")
    killer.before("os.link")
    killer.patch.setattr("rivermark.lake.append.delta_commit.remove_files", lambda *_: None)
    number = iter(range(100))

    def prepared() -> Lake:
        made = Lake(str(tmp_path / str(next(number))))
        create_table(made, RIDES)
        return made

    def write(lake: Lake) -> None:
        one = writer(lake)
        one.append_files_once(written(one, 1, 2, 3), 0)

    left = []
    for due, lake in killer.before_each(prepared, write):
        left.append(on_disk(lake))
        write(lake)
        assert ids(lake) == [1, 2, 3], due
        later = datetime.now(UTC) + lake.retention + timedelta(days=1)
        for old in Path(lake.path(RIDES)).glob("*.parquet"):
            os.utime(old, (0, 0))
        vacuum(lake, RIDES, [], later)
        assert (ids(lake), on_disk(lake)) == ([1, 2, 3], 3), "what a kill left is removed"
    assert left == [0, 1, 2, 3, 3, 3]


def spans(lake: Lake) -> list[tuple[str, str]]:
    """First and last time of each file of the newest commit, in their order."""
    entry = max(Path(lake.path(RIDES), "_delta_log").glob("*.json")).read_text()
    added = [json.loads(line)["add"] for line in entry.splitlines() if '"add"' in line]
    stats = [json.loads(each["stats"]) for each in added]
    return [(each["minValues"]["at"], each["maxValues"]["at"]) for each in stats]


@pytest.mark.parametrize(
    ("hours", "lateness", "many"),
    [
        pytest.param([(0, 1), (2, 3)], 0, True, id="apart"),
        pytest.param([(2, 3), (0, 1)], 0, True, id="the later one first"),
        pytest.param([(0, 2), (1, 3)], 0, False, id="overlapping"),
        pytest.param([(0, 2), (1, 3)], 2, True, id="by less than the lateness"),
        pytest.param([(0, 3), (1, 2)], 2, False, id="by as much"),
        pytest.param([(0, 1), (1, 2)], 0, False, id="one time in two files"),
        pytest.param([(0, 9), (1, 2), (3, 4)], 7, False, id="a wide one first"),
    ],
)
def test_files_are_in_an_order_in_which_a_reader_may_stop(
    lake: Lake, hours: list[tuple[int, int]], lateness: int, many: bool
) -> None:
    one = writer(lake)
    parts = [pa.concat_tables([rides(h, at=NOON + h * HOUR) for h in span]) for span in hours]
    adds = [add for part in parts for add in files(one).write(part)]
    assert one.append_files_once(adds, 0, lateness=lateness * HOUR)

    found = spans(lake)
    assert found == sorted(found)
    assert len(found) == (len(hours) if many else 1), "written again by ranges, here as one"
    assert ids(lake) == sorted(h for span in hours for h in span)
    assert on_disk(lake) == len(found)


def one_column(how: TableFiles, number: int) -> Adds:
    return how.write(rides(number).select(["id"]))


def test_another_process_writes_by_the_same_rules(lake: Lake) -> None:
    one = writer(lake)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        adds = [a for n in (1, 2) for a in pool.submit(one_column, files(one), n).result()]
    assert one.append_files_once(adds, 0)

    rows = DeltaTable(lake.path(RIDES)).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": 1, "at": None}, {"id": 2, "at": None}]


def test_rows_that_do_not_fit_are_refused_with_both_sides(lake: Lake) -> None:
    with pytest.raises(RivermarkError, match=r"the rows do not fit the table .*'id: double"):
        files(writer(lake)).write(pa.table({"id": [1.5]}))
    assert on_disk(lake) == 0


def test_files_off_the_local_disk_are_written_by_its_file_system(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name has the checksum of the footer before the file is put: a store renames nothing."""
    stored = fs.SubTreeFileSystem(lake.path(RIDES), fs.LocalFileSystem())
    features = files_of(DeltaTable(lake.path(RIDES)))
    assert features is not None
    monkeypatch.setattr(data_file, "filesystem", lambda _: (stored, ""))
    adds = TableFiles("s3://bucket/rides", features.features, {}).write(rides(1))

    monkeypatch.setattr(DeltaCommitter, "append_files", lambda *_: False)
    assert writer(lake).append_files_once(adds, 0)
    assert ids(lake) == [1]
