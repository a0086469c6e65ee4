"""Vacuum and a shorter log: what the promise or a reader needs is never deleted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.checkpoint import make_checkpoint
from rivermark.lake.integrity.log_faults import faults_of_log
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.maintain import MaintenanceResult
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.lake.retention import apply_retention, oldest_retained
from rivermark.lake.schema import create_table
from rivermark.lake.time_travel import readable, resolve_version
from rivermark.model.errors import DeclarationError, VersionNotAvailable
from tests.unit.lake.conftest import RIDES, ids, rides
from tests.unit.lake.maintenance.conftest import NEWEST, Upkeep, keep, keep_later, write


def test_the_promise_is_both_retentions_and_writers_clean_nothing(lake: Lake) -> None:
    kept = DeltaTable(lake.path(RIDES)).metadata().configuration
    assert kept["delta.logRetentionDuration"] == "interval 7 days"
    assert kept["delta.deletedFileRetentionDuration"] == "interval 7 days"
    assert kept["delta.enableExpiredLogCleanup"] == "false"


def test_a_changed_promise_reaches_a_table_that_is_there(lake: Lake) -> None:
    longer = Lake(lake.root, retention=timedelta(days=30))
    assert apply_retention(longer, RIDES)
    assert not apply_retention(longer, RIDES)

    kept = DeltaTable(lake.path(RIDES)).metadata().configuration
    assert kept["delta.deletedFileRetentionDuration"] == "interval 30 days"


def test_within_the_promise_every_version_can_be_read(lake: Lake, upkeep: Upkeep) -> None:
    write(lake, 0, 14)
    for _ in range(2):
        done = upkeep()
    assert (done.deleted_files, done.deleted_log_entries) == (0, 0)
    for version in range(DeltaTable(lake.path(RIDES)).version() + 1):
        assert len(ids(lake, version)) == min(version, 15)


@dataclass
class Cleaned:
    """Thirty batches, joined and then cleaned when the promise was over."""

    lake: Lake
    joined: int
    """The version that upkeep made of the thirty."""
    done: MaintenanceResult

    @property
    def versions(self) -> list[int]:
        return CommitLog(self.lake.path(RIDES)).versions()


@pytest.fixture(scope="module")
def cleaned(tmp_path_factory: pytest.TempPathFactory) -> Cleaned:
    lake = Lake(str(tmp_path_factory.mktemp("cleaned")))
    create_table(lake, RIDES)
    write(lake, 0, 29)
    keep(lake)
    joined = DeltaTable(lake.path(RIDES)).version()
    return Cleaned(lake, joined, keep_later(lake))


def test_after_the_promise_old_files_and_log_entries_go(cleaned: Cleaned) -> None:
    done = cleaned.done

    assert done.deleted_files == 30
    assert done.after.files == 2
    assert done.deleted_log_entries >= 30
    assert done.after.log_files < 24  # each commit has a checksum beside it
    for version in cleaned.versions:
        assert ids(cleaned.lake, version)[:30] == list(range(30))


def test_the_version_that_was_current_when_the_span_began_stays(cleaned: Cleaned) -> None:
    oldest = cleaned.versions[0]

    assert oldest <= cleaned.joined + 1, "the last commit before the second that is promised"
    assert NEWEST not in ids(cleaned.lake, oldest)


def test_who_asks_for_a_version_that_is_gone_is_told_the_oldest(cleaned: Cleaned) -> None:
    lake, oldest = cleaned.lake, cleaned.versions[0]

    with pytest.raises(VersionNotAvailable, match=f"there are {oldest} to"):
        resolve_version(lake, RIDES, 3)
    with pytest.raises(VersionNotAvailable, match=rf"earliest moment is .*\(version {oldest}\)"):
        resolve_version(lake, RIDES, datetime(2020, 1, 1, tzinfo=UTC))
    assert resolve_version(lake, RIDES, oldest) == oldest


def test_what_a_reader_has_not_read_stays_with_its_log(
    lake: Lake, upkeep: Upkeep, later: Upkeep
) -> None:
    write(lake, 0, 29)
    upkeep()
    slow = Reader("test/slow", 5)

    held = later(slow)

    assert (held.deleted_files, held.deleted_log_entries) == (0, 0)
    assert any("rivermark reset test/slow" in note for note in held.notes)
    for version in range(5, 31):
        assert CommitLog(lake.path(RIDES)).read(version) is not None
    assert later(Reader("test/slow", 70)).deleted_files == 30


def test_a_version_that_is_read_as_a_whole_keeps_its_files(
    lake: Lake, upkeep: Upkeep, later: Upkeep
) -> None:
    write(lake, 0, 29)
    upkeep()

    held = later(Reader("test/new", 30, snapshot=True))

    assert ids(lake, 30) == list(range(30))
    assert held.deleted_files == 0, "files that version 30 holds"
    assert later(Reader("test/new", 31, snapshot=True)).deleted_files == 30


def test_n055_what_comes_after_a_version_that_is_read_as_a_whole_is_kept_too(
    lake: Lake, upkeep: Upkeep, later: Upkeep
) -> None:
    """Behind the snapshot of version 20 the reader goes on with the files of commit 21."""
    write(lake, 0, 29)
    upkeep()

    held = later(Reader("test/new", 20, snapshot=True))

    assert held.deleted_files == 0
    assert "stream 'test/new' has read only to version 20" in held.notes[0]


def test_n055_the_log_stays_from_where_a_reader_starts_again(
    lake: Lake, upkeep: Upkeep, later: Upkeep
) -> None:
    """It has read all rows: the files go, and the log as far as it does not need it."""
    for batch in range(30):
        write(lake, batch, batch)
        if batch in (9, 19):
            make_checkpoint(lake.path(RIDES))
    upkeep()
    resting = Reader("test/resting", 99, log_from=25)

    done = later(resting)

    assert (done.deleted_files, done.notes) == (30, [])
    assert CommitLog(lake.path(RIDES)).versions()[0] == 20
    assert later(replace(resting, log_from=98)).deleted_log_entries > 0
    assert CommitLog(lake.path(RIDES)).versions()[0] > 25


def test_a_longer_retention_begins_with_what_the_shorter_one_kept(
    lake: Lake, upkeep: Upkeep, later: Upkeep
) -> None:
    """The lake promises a week, after one second: what is gone is not missed."""
    write(lake, 0, 19)
    upkeep()
    later()
    write(lake, 20, 24)
    newest = DeltaTable(lake.path(RIDES)).version()
    now = datetime.now(UTC)

    assert oldest_retained(lake, RIDES, now) >= 21, "it is not applied yet"
    assert apply_retention(lake, RIDES, now)
    oldest = oldest_retained(lake, RIDES, now)

    assert oldest >= 21
    assert readable(lake, RIDES, oldest)
    for days in (1, 6.9):
        assert oldest_retained(lake, RIDES, now + timedelta(days=days)) == oldest
    assert oldest_retained(lake, RIDES, now + timedelta(days=8)) == newest + 1
    assert upkeep().deleted_files == 0
    shorter = Lake(lake.root, retention=timedelta(days=1))
    assert apply_retention(shorter, RIDES, now)
    newest = DeltaTable(lake.path(RIDES)).version()
    assert oldest_retained(shorter, RIDES, now + timedelta(days=2)) == newest


@pytest.mark.parametrize(
    "name", ["delta.logRetentionDuration", "delta.DeletedFileRetentionDuration"]
)
def test_a_property_that_says_otherwise_than_the_retention_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"property {name} follows from the retention"):
        replace(RIDES, properties={name: "interval 1 days"})


def test_what_a_killed_writer_left_goes_too(lake: Lake, later: Upkeep) -> None:
    write(lake, 0, 9)
    stray = Path(lake.path(RIDES)) / "part-00000-stray.parquet"
    stray.write_bytes(b"half a file")

    assert later().deleted_files == 1
    assert not stray.exists()
    assert ids(lake) == [*range(10), NEWEST]


def test_what_a_killed_writer_left_of_a_log_entry_goes_after_an_hour(
    lake: Lake, upkeep: Upkeep
) -> None:
    write(lake, 0, 2)
    log = Path(lake.path(RIDES)) / "_delta_log"
    old, new, other = (log / name for name in (f".{'a' * 32}.tmp", f".{'b' * 32}.tmp", ".x.tmp"))
    for file in (old, new, other):
        file.write_text("{}")
    for file in (old, other):
        os.utime(file, (0, 0))

    assert upkeep(dry_run=True).deleted_files == 1
    assert upkeep().deleted_files == 1

    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
    assert ids(lake) == [0, 1, 2]


def test_what_a_killed_jvm_left_of_a_log_entry_goes_as_fsck_says(
    lake: Lake, upkeep: Upkeep
) -> None:
    write(lake, 0, 2)
    log = Path(lake.path(RIDES)) / "_delta_log"
    draft = f".{4:020d}.json.8d0e6f5c-41aa-4d2e-9b3f-0123456789ab.tmp"
    drafts = [log / draft, log / f".{draft}.crc"]  # Hadoop keeps checksums of it beside it.
    for file in drafts:
        file.write_text("{}")
        os.utime(file, (0, 0))
    assert {fault.path for fault in faults_of_log(lake.path(RIDES))} == {str(d) for d in drafts}

    assert upkeep().deleted_files == 2

    assert [file for file in drafts if file.exists()] == []
    assert not list(faults_of_log(lake.path(RIDES)))


def test_a_checksum_file_goes_with_its_data_file(lake: Lake, later: Upkeep) -> None:
    folder = Path(lake.path(RIDES))
    for number in range(2):
        with commit_lock(str(folder)):
            write_deltalake(str(folder), rides(number), mode="overwrite")
    before = {*folder.glob("*.parquet")}
    assert {*folder.glob(".*.crc")} == {sidecar_of(path) for path in before}

    assert later().deleted_files == 1
    (gone,) = before - {*folder.glob("*.parquet")}
    assert not sidecar_of(gone).exists()
    assert sum(sidecar_of(path).exists() for path in before) == 1
