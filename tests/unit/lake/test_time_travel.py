"""Which version a moment or a number means (cases B052, B053, B054)."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.time_travel import oldest_readable, resolve_version
from rivermark.model.errors import VersionNotAvailable
from tests.unit.lake.conftest import RIDES, rides

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def stamp(lake: Lake, version: int, at: datetime) -> None:
    """Let a commit have been made at that moment; its checksum file was for another one."""
    path = Path(lake.path(RIDES)) / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = int(at.timestamp() * 1000)
    path.write_text("\n".join(json.dumps(line) for line in lines))
    path.with_suffix(".crc").unlink(missing_ok=True)


@pytest.fixture
def hourly(lake: Lake) -> Lake:
    """Version 0 at ten, 1 at eleven, 2 at twelve."""
    for n in (1, 2):
        write_deltalake(lake.path(RIDES), rides(n), mode="append")
    for version in range(3):
        stamp(lake, version, TEN + version * HOUR)
    return lake


def test_b053_a_moment_after_the_last_commit_is_the_newest_version(hourly: Lake) -> None:
    assert resolve_version(hourly, RIDES, TEN + 20 * HOUR) == 2
    assert resolve_version(hourly, RIDES, None) == 2


def test_b053_a_moment_before_the_first_commit_is_refused_with_the_earliest(hourly: Lake) -> None:
    with pytest.raises(VersionNotAvailable) as refused:
        resolve_version(hourly, RIDES, TEN - HOUR)
    assert "the earliest moment is 2024-03-01T10:00:00+00:00 (version 0)" in str(refused.value)


def test_b053_a_moment_without_a_zone_is_utc(hourly: Lake) -> None:
    naive = (TEN + 90 * timedelta(minutes=1)).replace(tzinfo=None)

    assert resolve_version(hourly, RIDES, naive) == 1


def test_a_moment_means_the_last_commit_at_or_before_it(hourly: Lake) -> None:
    assert resolve_version(hourly, RIDES, TEN) == 0
    assert resolve_version(hourly, RIDES, TEN + HOUR - timedelta(milliseconds=1)) == 0
    assert resolve_version(hourly, RIDES, TEN + HOUR) == 1


def test_b054_a_copy_without_file_times_still_knows_when_it_was_committed(
    hourly: Lake, tmp_path: Path
) -> None:
    shutil.copytree(hourly.root, tmp_path / "copy", copy_function=shutil.copyfile)
    for path in (tmp_path / "copy").rglob("*.json"):
        os.utime(path, (TEN.timestamp() + 7200, TEN.timestamp() + 7200))

    assert resolve_version(Lake(str(tmp_path / "copy")), RIDES, TEN + HOUR / 2) == 0


def test_a_number_that_the_log_does_not_hold_is_refused_with_those_it_does(hourly: Lake) -> None:
    assert resolve_version(hourly, RIDES, 1) == 1
    for version in (-1, 3):
        with pytest.raises(VersionNotAvailable, match="there are 0 to 2"):
            resolve_version(hourly, RIDES, version)


def test_a_table_that_was_never_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(VersionNotAvailable, match="'test/rides' does not exist yet"):
        resolve_version(Lake(str(tmp_path / "empty")), RIDES, None)


def test_b052_a_version_whose_files_are_gone_is_refused_before_anything_is_read(lake: Lake) -> None:
    for n in range(1, 4):
        write_deltalake(lake.path(RIDES), rides(n), mode="overwrite")
    write_deltalake(lake.path(RIDES), rides(4), mode="append")
    DeltaTable(lake.path(RIDES)).vacuum(
        retention_hours=0, dry_run=False, enforce_retention_duration=False
    )

    with pytest.raises(VersionNotAvailable) as refused:
        resolve_version(lake, RIDES, 2)
    assert "version 2 of table 'test/rides' is not available" in str(refused.value)
    assert "the oldest is 3" in str(refused.value)
    assert [resolve_version(lake, RIDES, v) for v in (3, 4)] == [3, 4]


def test_a_folder_whose_name_has_a_space_hides_no_version(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "my lake 100%"))
    create_table(lake, RIDES)
    write_deltalake(lake.path(RIDES), rides(1), mode="append")
    write_deltalake(lake.path(RIDES), rides(2), mode="overwrite")

    assert oldest_readable(lake, RIDES) == 0
    assert resolve_version(lake, RIDES, 1) == 1
