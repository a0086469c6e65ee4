"""A table's log, read without an engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog, commit_of
from tests.unit.lake.conftest import RIDES, Foreign, ids, rides


def test_a_table_that_does_not_exist_has_no_versions(tmp_path: Path) -> None:
    log = CommitLog(str(tmp_path / "nothing"))

    assert log.versions() == []
    assert log.latest() is None
    assert log.complete()
    assert log.read(0) is None


def test_versions_ascend_and_commits_are_told_from_the_newest_on(
    lake: Lake, foreign: Foreign
) -> None:
    foreign()
    foreign()
    log = CommitLog(lake.path(RIDES))

    assert log.versions() == [0, 1, 2]
    assert [c.version for c in log.backwards()] == [2, 1, 0]
    newest = log.latest()
    assert newest is not None
    assert newest.metadata == {"by": "a person"}
    assert newest.rows == 1
    assert abs((newest.at - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.parametrize("text", ["\u2028", "\u2029", "\x85", "\x0b", "\x1c"])
def test_separators_in_a_text_of_somebody_else_end_no_line(lake: Lake, text: str) -> None:
    path = lake.path(RIDES)
    appender = DeltaCommitter(path)
    assert appender.append(rides(1), {})
    entry = {"commitInfo": {"timestamp": 0, "operation": f"DELETE {text} x", "isBlindAppend": True}}
    place = Path(path, "_delta_log", f"{2:020d}.json")
    place.write_text(json.dumps(entry, ensure_ascii=text < " ") + "\n", encoding="utf-8")

    newest = CommitLog(path).latest()
    assert newest is not None
    assert newest.operation == f"DELETE {text} x"
    assert appender.append(rides(2), {})
    assert ids(lake) == [1, 2]


def test_only_commits_are_taken_for_versions(lake: Lake) -> None:
    folder = Path(lake.path(RIDES)) / "_delta_log"
    for name in ("00000000000000000009.checkpoint.parquet", "_last_checkpoint", "9.json",
                 ".00000000000000000007.json.tmp", "00000000000000000008.crc"):  # fmt: skip
        (folder / name).write_text("{}")

    assert CommitLog(lake.path(RIDES)).versions() == [0]


@pytest.mark.parametrize(
    "name",
    [
        f"{1:020d}.{2:020d}.compacted.json",
        f"{7:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        f"{7:020d}.2f1c3a5e-7026-4e79-81be-64bd76c43a11.json",
    ],
)
def test_files_of_compacted_unfinished_and_summed_up_commits_are_no_versions(
    lake: Lake, foreign: Foreign, name: str
) -> None:
    foreign()
    folder = Path(lake.path(RIDES), "_delta_log")
    (folder / name).write_text((folder / f"{1:020d}.json").read_text())

    assert CommitLog(lake.path(RIDES)).versions() == [0, 1]
    assert [c.version for c in CommitLog(lake.path(RIDES)).backwards()] == [1, 0]


def test_a_trimmed_log_is_not_complete(lake: Lake, foreign: Foreign) -> None:
    foreign()
    (Path(lake.path(RIDES)) / "_delta_log" / f"{0:020}.json").unlink()

    assert not CommitLog(lake.path(RIDES)).complete()


@pytest.mark.parametrize("told", [None, "", "no json", '"text"', "[1]", "7"])
def test_metadata_of_others_is_no_error_and_tells_nothing(told: str | None) -> None:
    assert commit_of(3, {"userMetadata": told, "timestamp": 0}).metadata == {}


def test_commits_of_both_writers_are_understood() -> None:
    engine = {"timestamp": 1000, "operation": "WRITE", "operationMetrics": {"numOutputRows": "5"},
              "userMetadata": json.dumps({"batch": 1})}  # fmt: skip
    arrow = {"timestamp": 1000, "operation": "WRITE", "operationMetrics": {"num_added_rows": 5},
             "userMetadata": json.dumps({"batch": 1})}  # fmt: skip

    assert commit_of(1, engine) == commit_of(1, arrow)
    assert commit_of(1, engine).rows == 5
    assert commit_of(1, {}).rows is None
