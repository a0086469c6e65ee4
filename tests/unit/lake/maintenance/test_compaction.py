"""Compaction: fewer files, the same rows, and no change that a reader by stream would see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake.checkpoint import make_checkpoint
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock, days_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance import compaction
from rivermark.lake.maintenance.compaction import MANY, compact, join_many
from rivermark.lake.maintenance.maintain import BUSY
from rivermark.lake.maintenance.reader_positions import Reader
from tests.kills import Killer
from tests.unit.lake.conftest import RIDES, ids, rides
from tests.unit.lake.maintenance.conftest import Upkeep, write, writer


def actions(lake: Lake, version: int) -> list[dict[str, dict[str, object]]]:
    path = Path(lake.path(RIDES)) / "_delta_log" / f"{version:020}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_small_files_become_one_with_the_same_rows(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 19)

    done = upkeep()

    assert (done.before.live_files, done.joined_files, done.after.live_files) == (20, 20, 1)
    assert ids(lake) == list(range(20))
    assert done.after.files == 21, "the joined ones stay for as long as the promise"


def test_many_small_files_are_joined_while_their_writer_goes_on(lake: Lake) -> None:
    path, ours = lake.path(RIDES), writer(lake)
    for batch in range(MANY - 1):
        ours.append_once(rides(batch), batch)
    assert join_many(path, "r") == 0
    ours.append_once(rides(MANY - 1), MANY - 1)

    assert join_many(path, "r") == MANY

    assert not writer(lake).append_once(rides(MANY - 1), MANY - 1), "a replay after a kill"
    assert not ours.append_once(rides(MANY - 1), MANY - 1)
    assert ours.append_once(rides(MANY), MANY)
    assert join_many(path, "r") == 0
    assert DeltaTable(path).get_add_actions().num_rows == 2
    assert ids(lake) == list(range(MANY + 1))


def test_the_commit_says_that_no_data_changed(lake: Lake) -> None:
    write(lake, 0, 9)
    compact(lake.path(RIDES), (), "u")

    log = CommitLog(lake.path(RIDES))
    found = actions(lake, log.versions()[-1])
    changes = [a[k]["dataChange"] for a in found for k in ("add", "remove") if k in a]
    assert changes == [False] * 11
    assert not log.adds_rows(11, 12)
    assert log.adds_rows(10, 11)


def sizes(lake: Lake) -> dict[str, int]:
    """Bytes of each file by its name, in the order in which they were committed."""
    added = pa.table(DeltaTable(lake.path(RIDES)).get_add_actions()).sort_by("modification_time")
    return dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))


def test_what_was_joined_is_left_alone_and_holds_rows_of_a_short_time(lake: Lake) -> None:
    write(lake, 0, 39)
    target = sum([*sizes(lake).values()][:10]) + 1
    assert compact(lake.path(RIDES), (), "u", target=target) == (40, "")
    whole = {name for name, size in sizes(lake).items() if size >= target // 2}
    spans = pa.table(DeltaTable(lake.path(RIDES)).get_add_actions(flatten=True))
    ends = zip(spans["min.id"].to_pylist(), spans["max.id"].to_pylist(), strict=True)
    assert sorted(ends) == [(0, 9), (10, 19), (20, 29), (30, 39)]

    write(lake, 40, 49)
    joined, _ = compact(lake.path(RIDES), (), "u", target=target)

    assert joined == 10 + 4 - len(whole)
    assert whole <= {*sizes(lake)}
    assert ids(lake) == list(range(50))


def test_a_file_that_is_taken_out_meanwhile_leaves_its_neighbours_as_they_are(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lake, 0, 19)
    target = sum([*sizes(lake).values()][:10]) + 1

    @contextmanager
    def after_another(path: str) -> Iterator[None]:
        monkeypatch.undo()
        DeltaTable(path).delete("id = 3")
        with commit_lock(path):
            yield

    monkeypatch.setattr(compaction, "commit_lock", after_another)

    assert compact(lake.path(RIDES), (), "u", target=target) == (10, "")
    assert ids(lake) == [n for n in range(20) if n != 3]
    assert len(sizes(lake)) == 10
    # One file of the second ten, none of the first: what was written of these is gone.
    assert len([*Path(lake.path(RIDES)).glob("*.parquet")]) == 21


def test_a_kill_before_any_step_leaves_the_rows_as_they_were(lake: Lake, killer: Killer) -> None:
    write(lake, 0, 9)
    for step in ("_join", "commit_lock", "DeltaCommitter.replace_files"):
        killer.before(f"rivermark.lake.maintenance.compaction.{step}")
    due = 1
    while killer.kills(due, lambda: compact(lake.path(RIDES), (), "u")):
        assert ids(lake) == list(range(10))
        due += 1

    assert due == 4
    assert (ids(lake), len(sizes(lake))) == (list(range(10)), 1)


def test_a_table_with_a_constraint_is_joined_too(lake: Lake) -> None:
    write(lake, 0, 9)
    DeltaTable(lake.path(RIDES)).alter.add_constraint({"known": "id >= 0"})

    assert compact(lake.path(RIDES), (), "u") == (10, "")
    assert ids(lake) == list(range(10))


def test_few_files_are_left_alone(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 5)
    assert upkeep().joined_files == 0
    assert DeltaTable(lake.path(RIDES)).version() == 6


def test_a_dry_run_counts_and_changes_nothing(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 19)
    before = sorted(p.name for p in Path(lake.path(RIDES)).rglob("*") if p.is_file())

    done = upkeep(dry_run=True)

    assert done.joined_files == 20
    locks = {"_commit.lock", "_days.lock"}
    after = sorted(p.name for p in Path(lake.path(RIDES)).rglob("*") if p.is_file())
    assert set(after) - set(before) <= locks


def test_files_that_a_reader_has_not_read_are_not_joined(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 19)

    done = upkeep(Reader("test/slow", 13))

    assert done.joined_files == 12, "versions 1 to 12 are behind the reader"
    assert done.after.live_files == 9
    assert ids(lake) == list(range(20))


def test_a_reader_before_the_last_compaction_is_waited_for(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 9)
    upkeep()
    write(lake, 10, 19)

    done = upkeep(Reader("test/slow", 5))

    assert done.joined_files == 0
    assert "stream 'test/slow' has read only to version 4" in done.notes[0]
    assert upkeep(Reader("test/slow", 22)).joined_files == 11


def test_the_stream_goes_on_writing_and_knows_its_batches(lake: Lake, upkeep: Upkeep) -> None:
    ours = writer(lake)
    for batch in range(10):
        ours.append_once(rides(batch), batch)
        if batch in (3, 8):
            upkeep()

    assert upkeep().joined_files == 10 or ids(lake) == list(range(10))
    assert not writer(lake).append_once(rides(9), 9)
    assert ours.append_once(rides(10), 10)
    assert ids(lake) == list(range(11))


def test_a_table_of_which_days_are_computed_is_left_for_later(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 19)
    with days_lock(lake.path(RIDES)):
        done = upkeep()
    assert done.notes == [BUSY]
    assert DeltaTable(lake.path(RIDES)).version() == 20
    with commit_lock(lake.path(RIDES)):
        pass


def test_a_reader_that_has_read_all_rows_holds_up_nothing(lake: Lake, upkeep: Upkeep) -> None:
    """What came since are commits of maintenance alone."""
    write(lake, 0, 9)
    upkeep(Reader("test/resting", 11))

    done = upkeep(Reader("test/resting", 11))

    assert (done.joined_files, done.notes) == (0, [])


def test_n056_a_reader_at_the_beginning_of_the_log_is_waited_for(
    lake: Lake, upkeep: Upkeep
) -> None:
    """As maintenance left it before it knew what a start needs: version 8 is gone."""
    write(lake, 0, 8)
    make_checkpoint(lake.path(RIDES))
    write(lake, 9, 18)
    log = Path(lake.path(RIDES)) / "_delta_log"
    for version in range(9):
        (log / f"{version:020}.json").unlink()

    done = upkeep(Reader("test/slow", 9))

    assert done.joined_files == 0
    assert "stream 'test/slow' has read only to version 8 of 19" in done.notes[0]
    assert upkeep(Reader("test/slow", 20)).joined_files == 19
