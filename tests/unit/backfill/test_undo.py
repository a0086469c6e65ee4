"""Days brought back: exactly those, only if nobody changed them since, and only if it can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from deltalake import DeltaTable

from rivermark.backfill.pending import PENDING_AND_MERGES, append_events, pending_days
from rivermark.backfill.registry import newest_records
from rivermark.backfill.undo import undo
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError, VersionNotAvailable
from rivermark.model.topology import Topology
from tests.unit.backfill.conftest import DAY, NEXT_DAY, STREAM, TIPS, Tip, World
from tests.unit.model.declared import ingest


def rows(world: World, version: int | None = None) -> list[tuple[int, Decimal]]:
    found = DeltaTable(world.lake.path(TIPS), version=version).to_pyarrow_table()
    return sorted(zip(found["ride"].to_pylist(), found["tip"].to_pylist(), strict=True))


def priced(**tips: str) -> list[tuple[int, Decimal]]:
    return sorted((int(ride[1:]), Decimal(tip)) for ride, tip in tips.items())


def test_the_days_are_as_before_and_what_came_since_stays(world: World) -> None:
    world.append((1, "1.00"), (2, "2.00"))
    world.replaced("wrong", 1, [DAY], (1, "9.00"), (3, "3.00"))
    world.append((4, "4.00", NEXT_DAY))

    done = undo(world.settings, STREAM, "wrong", run_id="undoing")

    assert rows(world) == priced(r1="1.00", r2="2.00", r4="4.00")
    assert rows(world, 2) == priced(r1="9.00", r3="3.00")
    outcome = done.tables[TIPS.name]
    assert (outcome.version_before, outcome.version_after) == (3, 4)
    assert outcome.difference.sentence() == "1 added, 1 removed, 1 changed, 0 unchanged (tip in 1)"
    (record,) = newest_records(world.lake, STREAM.name)
    assert (record.kind, record.because, record.version_after) == ("undone", "wrong", 4)
    assert record.inputs == {TIPS.name: 1}


def test_a_writer_without_the_lock_that_comes_between_is_met_again_and_is_on_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.append((1, "1.00"))
    world.replaced("wrong", 1, [DAY], (1, "9.00"))
    foreign: list[Tip] = [(8, "8.00", NEXT_DAY), (7, "7.00")]

    def opened(path: str) -> DeltaTable:
        found = DeltaTable(path)
        if foreign:
            # Committed by delta-rs itself, between our reading of the table and our commit.
            world.append(foreign.pop())
        return found

    monkeypatch.setattr("rivermark.lake.replace.delta_table", opened)
    done = undo(world.settings, STREAM, "wrong", run_id="undoing")

    # The one on the day that is replaced is a conflict; the one on another day is none.
    assert rows(world) == priced(r1="1.00", r8="8.00")
    (record,) = newest_records(world.lake, STREAM.name)
    assert (record.conflicts, record.commits_meanwhile) == (1, 2)
    assert done.tables[TIPS.name].conflicts == 1


def test_an_undo_can_be_undone(world: World) -> None:
    world.append((1, "1.00"))
    world.replaced("right", 1, [DAY], (1, "9.00"))
    mistake = undo(world.settings, STREAM, "right", run_id="r")

    undo(world.settings, STREAM, mistake.id, run_id="r")

    assert rows(world) == priced(r1="9.00")


def test_days_that_were_replaced_again_are_refused_with_what_to_undo_first(world: World) -> None:
    world.append((1, "1.00"))
    world.replaced("first", 1, [DAY], (1, "2.00"))
    world.replaced("second", 2, [DAY, NEXT_DAY], (1, "3.00"))

    with pytest.raises(RivermarkError, match="--undo second"):
        undo(world.settings, STREAM, "first", run_id="r")
    assert rows(world) == priced(r1="3.00")

    undo(world.settings, STREAM, "second", run_id="r")
    undo(world.settings, STREAM, "first", run_id="r")
    assert rows(world) == priced(r1="1.00")


def test_a_replacement_of_other_days_is_no_hindrance(world: World) -> None:
    world.append((1, "1.00"), (2, "2.00", NEXT_DAY))
    world.replaced("first", 1, [DAY], (1, "9.00"))
    world.replaced("second", 2, [NEXT_DAY], (2, "9.00", NEXT_DAY))

    undo(world.settings, STREAM, "first", run_id="r")

    assert rows(world) == priced(r1="1.00", r2="9.00")


def test_a_row_that_came_late_into_the_days_is_not_lost(world: World) -> None:
    world.append((1, "1.00"))
    world.replaced("first", 1, [DAY], (1, "9.00"))
    world.append((5, "5.00"))

    with pytest.raises(RivermarkError, match="by new rows"):
        undo(world.settings, STREAM, "first", run_id="r")


def test_a_version_that_is_gone_is_told_with_the_oldest_there_is(world: World) -> None:
    world.append((1, "1.00"))
    world.replaced("first", 1, [DAY], (1, "9.00"))
    DeltaTable(world.lake.path(TIPS)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )

    with pytest.raises(VersionNotAvailable, match=r"version 1 .*the oldest is 2"):
        undo(world.settings, STREAM, "first", run_id="r")


@pytest.mark.parametrize("name", ["nobody", "../../etc", "' OR 1=1"])
def test_an_unknown_one_is_refused(world: World, name: str) -> None:
    world.append((1, "1.00"))
    with pytest.raises(RivermarkError, match="was never reprocessed as"):
        undo(world.settings, STREAM, name, run_id="r")


def test_m017_the_day_of_a_change_that_was_followed_is_owed_after_its_undo(world: World) -> None:
    """The recompute of a merge is undone: the day lacks the late row, and was "complete"."""
    topology = Topology([STREAM])
    world.append((1, "1.00"))
    world.replaced("by-hand", 1, [DAY], (1, "2.00"))
    world.replaced("merge", 2, [DAY], (1, "2.00"), (2, "3.00"), because="fold-1")

    done = undo(world.settings, STREAM, "merge", run_id="r")

    assert rows(world) == priced(r1="2.00")
    assert pending_days(world.lake, topology) == {STREAM.name: {DAY}}
    undo(world.settings, STREAM, done.id, run_id="r")
    assert rows(world) == priced(r1="2.00", r2="3.00")
    assert pending_days(world.lake, topology) == {}


def test_m017_an_undo_of_what_a_person_ordered_owes_nothing(world: World) -> None:
    world.append((1, "1.00"))
    world.replaced("wrong", 1, [DAY], (1, "9.00"))

    undo(world.settings, STREAM, "wrong", run_id="r")

    assert pending_days(world.lake, Topology([STREAM])) == {}


def test_m017_a_day_into_which_late_rows_were_merged_is_owed_after_any_undo(world: World) -> None:
    """A person recomputed the day that the merge left open, and undoes that."""
    source = ingest()
    stream = replace(STREAM, reads=(source,))
    world.append((1, "1.00"))
    create_table(world.lake, PENDING_AND_MERGES)
    noon = datetime(DAY.year, DAY.month, DAY.day, 12, tzinfo=UTC)
    merge = {"fold": "fold-1", "state": "begun", "stream": source.name, "hours": [noon]}
    append_events(world.lake, "r", [merge, {"fold": "fold-1", "state": "over"}])
    world.replaced("by-hand", 1, [DAY, NEXT_DAY], (1, "1.00"), (2, "3.00"))

    undo(world.settings, stream, "by-hand", run_id="r")

    assert pending_days(world.lake, Topology([source, stream])) == {STREAM.name: {DAY}}
