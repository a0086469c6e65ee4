"""A standalone master with two workers writes the same tables as one process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rivermark.settings import Settings
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.sensors import by_value, windows
from tests.spark.runtime.query.test_commits_of_many_files import commits, kept
from tests.spark_cluster import cluster

pytestmark = [pytest.mark.spark, pytest.mark.long]


def run_on(home: Path, master: str) -> None:
    """Run the streams in a process of their own."""
    command = [sys.executable, "-m", "tests.spark.helpers.on_cluster", str(home), master]
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "RIVERMARK_EXECUTOR_MEMORY": "512m"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]


def test_two_workers_write_what_one_process_writes(tmp_path: Path) -> None:
    homes = {name: tmp_path / name for name in ("local", "cluster")}
    run_on(homes["local"], "local[2]")
    with cluster(tmp_path, workers=2) as master:
        run_on(homes["cluster"], master)
        used = [n for n in (0, 1) if list((tmp_path / f"work{n}").glob("app-*/*/stderr"))]
    assert used == [0, 1], "both workers had an executor"

    lakes = [Settings(home=home).lake() for home in homes.values()]
    [of_events] = kept().tables
    parts = [replace(of_events, name=f"test/{name}") for name in ("warm", "cold")]
    for table in (of_events, *windows(kept()).tables, *parts):
        names = [n for n in table.schema.fieldNames() if n != "_ingested_at"]
        local, spread = (
            sorted(delta_rows(lake.path(table), *names), key=by_value) for lake in lakes
        )
        assert local == spread
        assert local
    for lake in lakes:
        assert max(len(added) for added in commits(lake, kept().tables[0])) > 4
