"""A run that is killed with signal 9 in the middle of its audit: nothing of it is published."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable

from rivermark.lake.log import CommitLog
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, reading
from tests.stories.audited import WINDOWS
from tests.stories.deployment import ROOT

pytestmark = [pytest.mark.story, pytest.mark.slow]


def start(home: Path, *signal_file: Path) -> subprocess.Popen[bytes]:
    """The run, as the first of a group of processes: its JVM is killed with it."""
    command = [sys.executable, "-m", "tests.stories.audited", str(home), *map(str, signal_file)]
    return subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True
    )


def test_a_run_that_is_killed_in_its_audit_publishes_nothing_and_the_next_one_all_of_it(
    tmp_path: Path,
) -> None:
    settings, table = Settings(home=tmp_path / "home"), WINDOWS.tables[0]
    landing = Landing(Path(settings.landing_root))
    landing.put(f"{FOLDER}/1.json", *(reading(minute) for minute in (0, 1, 2, 7, 8)), reading(60))
    path, in_the_audit = settings.lake().path(table), tmp_path / "in the audit"
    run = start(settings.home, in_the_audit)
    try:
        wait_until(in_the_audit.exists, 240, reason="the rows are being evaluated")
        assert run.poll() is None
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()

    assert DeltaTable(path).to_pyarrow_table().num_rows == 0
    assert all("batch" not in commit.metadata for commit in CommitLog(path).backwards())

    assert start(settings.home).wait(240) == 0

    rows = DeltaTable(path).to_pyarrow_table().sort_by("window_end")
    assert rows["readings"].to_pylist() == [3, 2]
    batches = [c.metadata["run"] for c in CommitLog(path).backwards() if "batch" in c.metadata]
    assert batches == ["after"]
