"""A stream that stood still for longer than the log reaches back still knows its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.lake.written import check_not_behind, note_written
from rivermark.model.errors import CheckpointIncompatible, ReplayUnprovable
from rivermark.model.sink import Origin
from tests.unit.lake.conftest import NOON, RIDES, Foreign, ids, rides
from tests.unit.lake.maintenance.conftest import NEWEST, SINCE, Upkeep, write, writer

FOREIGN = 6


def quiet(foreign: Foreign, upkeep: Upkeep, later: Upkeep) -> None:
    """One stream writes, then only another does until the first one's batch has left the log."""
    for _ in range(FOREIGN):
        foreign()
    upkeep()
    later()


def test_its_newest_batch_is_still_known(
    lake: Lake, foreign: Foreign, upkeep: Upkeep, later: Upkeep
) -> None:
    write(lake, 0, 4)
    for _ in range(2):
        quiet(foreign, upkeep, later)

    assert not CommitLog(lake.path(RIDES)).complete()
    assert not writer(lake, "test/other").has(0)
    back = writer(lake)
    assert back.has(4)
    assert not back.has(5)
    kept = back.metadata_of(4)
    assert kept is not None
    assert kept["watermark"] == "of 4"
    assert back.append_once(rides(5), 5)
    assert back.rows_written(5) == 1
    assert [n for n in ids(lake) if 0 <= n < NEWEST] == list(range(6))


def test_n055_the_newest_batch_of_a_refreshing_stream_is_still_known(
    lake: Lake, foreign: Foreign, upkeep: Upkeep, later: Upkeep
) -> None:
    """It replaces days, and was refused after a quiet month: the table seemed to lack its batch."""
    origin = Origin("test/daily", 0, SINCE, "run")
    metadata = {"stream": "test/daily", "generation": 0, "refresh": 7, "run": "run"}
    replace_days(lake, RIDES, rides(*range(10)), [NOON.date()], metadata)
    note_written(lake, RIDES, origin, 7)
    for _ in range(2):
        quiet(foreign, upkeep, later)

    assert not CommitLog(lake.path(RIDES)).complete()
    check_not_behind(lake, RIDES, origin, None, "refresh")
    note_written(lake, RIDES, origin, 8)
    with pytest.raises(CheckpointIncompatible, match="lacks batch 8"):
        check_not_behind(lake, RIDES, origin, None, "refresh")


def test_a_log_that_was_cut_before_is_not_made_whole(
    lake: Lake, foreign: Foreign, upkeep: Upkeep, later: Upkeep
) -> None:
    for _ in range(2 * FOREIGN):
        foreign()
    DeltaTable(lake.path(RIDES)).create_checkpoint()
    log = Path(lake.path(RIDES)) / "_delta_log"
    for version in range(10):
        (log / f"{version:020}.json").unlink()
    quiet(foreign, upkeep, later)

    with pytest.raises(ReplayUnprovable):
        writer(lake)


def test_rows_are_counted_after_the_log_was_cleaned_meanwhile(
    lake: Lake, foreign: Foreign, upkeep: Upkeep, later: Upkeep
) -> None:
    ours = writer(lake)
    ours.append_once(rides(0), 0)
    assert ours.rows_written(0) == 1
    quiet(foreign, upkeep, later)

    ours.append_once(rides(1, 2), 1)
    assert ours.rows_written(1) == 2
