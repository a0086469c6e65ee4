"""Appending once: a replay changes nothing, whoever else commits in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType

from rivermark.lake import batch_writer
from rivermark.lake.append import delta_commit
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.model.errors import ReplayUnprovable
from rivermark.model.sink import Origin
from tests.unit.lake.conftest import RIDES, Foreign, ids, rides

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True, params=["a log entry of ours", "delta-rs"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of a commit: what the appender does not serve is left to delta-rs."""
    if request.param == "delta-rs":
        monkeypatch.setattr(DeltaCommitter, "append", lambda *_: False)


def writer(lake: Lake, generation: int = 0, stream: str = "test/rides") -> TableWriter:
    """A writer as a new run opens it."""
    return TableWriter(lake, RIDES, Origin(stream, generation, LONG_AGO, "run"))


def test_a_batch_is_appended_once_also_by_the_next_run(lake: Lake) -> None:
    assert writer(lake).append_once(rides(1, 2), 0)

    again = writer(lake)
    assert again.has(0)
    assert not again.append_once(rides(1, 2), 0)
    assert again.append_once(rides(3), 1)
    assert not again.append_once(rides(3), 1)
    assert ids(lake) == [1, 2, 3]


def test_a_batch_again_after_an_error_behind_its_commit_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("behind the commit")

    one = writer(lake)
    assert one.append_once(rides(1), 0)
    with monkeypatch.context() as patched:
        patched.setattr(delta_commit, "put_checksum", fail)
        patched.setattr(batch_writer, "write_checksum", fail)
        with pytest.raises(RuntimeError, match="behind the commit"):
            one.append_once(rides(2), 1)

    assert one.has(1)
    assert not one.append_once(rides(2), 1)
    assert one.append_once(rides(3), 2)
    assert ids(lake) == [1, 2, 3]


def test_commits_of_others_in_between_hide_nothing(lake: Lake, foreign: Foreign) -> None:
    first = writer(lake)
    foreign()
    first.append_once(rides(1), 0)
    foreign()
    first.append_once(rides(2), 1)
    foreign()
    foreign()

    again = writer(lake)
    assert again.has(1)
    assert not again.has(2)
    assert not again.append_once(rides(2), 1)
    again.append_once(rides(3), 2)
    assert ids(lake) == [-1, -1, -1, -1, 1, 2, 3]


def test_another_stream_or_generation_has_batches_of_its_own(lake: Lake) -> None:
    writer(lake).append_once(rides(1), 7)

    assert not writer(lake, generation=1).has(0)
    assert not writer(lake, stream="test/other").has(0)
    assert writer(lake, generation=1).append_once(rides(2), 0)
    assert writer(lake).has(7)
    assert ids(lake) == [1, 2]


def test_a_generation_begun_after_the_newest_commit_looks_no_further(lake: Lake) -> None:
    writer(lake).append_once(rides(1), 0)
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    assert TableWriter(lake, RIDES, Origin("test/rides", 1, tomorrow, "run")).last is None


def trim(lake: Lake, before: int) -> None:
    """Take the oldest commits out of the log, as its retention does."""
    DeltaTable(lake.path(RIDES)).create_checkpoint()
    for version in range(before):
        (Path(lake.path(RIDES)) / "_delta_log" / f"{version:020}.json").unlink()


def test_a_trimmed_log_that_still_shows_the_last_batch_serves(lake: Lake, foreign: Foreign) -> None:
    first = writer(lake)
    for batch in range(5):
        first.append_once(rides(batch), batch)
    trim(lake, 4)

    assert writer(lake).has(4)
    assert not writer(lake).append_once(rides(4), 4)


def test_a_trimmed_log_without_a_batch_of_ours_proves_nothing(lake: Lake, foreign: Foreign) -> None:
    writer(lake).append_once(rides(1), 0)
    for _ in range(4):
        foreign()
    trim(lake, 3)

    with pytest.raises(ReplayUnprovable, match="'test/rides': its log begins at version 3"):
        writer(lake)


def test_a_writer_keeps_on_after_a_column_was_added_by_another_process(lake: Lake) -> None:
    first = writer(lake)
    first.append_once(rides(1), 0)
    DeltaTable(lake.path(RIDES)).alter.add_columns([Field("tip", PrimitiveType("double"))])
    first.append_once(rides(2), 1)
    first.append_once(rides(3), 2)

    assert ids(lake) == [1, 2, 3]
    assert DeltaTable(lake.path(RIDES)).to_pyarrow_table()["tip"].to_pylist() == [None] * 3


def test_what_was_written_beside_the_newest_batch_is_told(lake: Lake) -> None:
    writer(lake).append_once(rides(1), 3, metadata={"watermark": "2024-03-01T12:00:00+00:00"})

    kept = writer(lake).metadata_of(3)
    assert kept is not None
    assert kept["watermark"] == "2024-03-01T12:00:00+00:00"
    assert (kept["stream"], kept["generation"], kept["batch"], kept["run"]) == (
        "test/rides", 0, 3, "run",
    )  # fmt: skip
    assert writer(lake).metadata_of(2) is None


def test_the_rows_of_a_batch_are_told_by_its_commit(lake: Lake, foreign: Foreign) -> None:
    first = writer(lake)
    foreign()
    first.append_once(rides(1, 2, 3), 0)
    foreign()

    assert first.rows_written(0) == 3
    first.append_once(rides(4), 1)
    assert first.rows_written(1) == 1
    assert CommitLog(lake.path(RIDES)).complete()
