"""`spark.driver.maxResultSize` ends no batch: what Spark gives up to collect, executors write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermark.settings import Settings
from tests.spark.helpers.on_cluster import MANY
from tests.spark.runtime.query.test_commits_of_many_files import commits, kept

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_rows_beyond_what_spark_collects_are_written_by_executors(tmp_path: Path) -> None:
    """The limit is 1 MB here, and 20,000 rows are more; it can be set for a process alone."""
    command = [sys.executable, "-m", "tests.spark.helpers.on_cluster", str(tmp_path)]
    command += ["local[2]", "collecting"]
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-4000:]

    lake, table = Settings(home=tmp_path).lake(), kept().tables[0]
    [adds] = commits(lake, table)
    assert sum(json.loads(each["stats"])["numRecords"] for each in adds) == MANY
