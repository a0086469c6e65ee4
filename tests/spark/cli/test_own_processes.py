"""The commands that start Spark, each in a process of its own, over one small lake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CONSOLE = "from rivermark.cli.main import app; app(prog_name='rivermark')"


class Console:
    """The console as a user starts it: a new process for each command."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", CONSOLE, *command.split()],
            cwd=self.home,
            env=os.environ
            | {"RIVERMARK_HOME": str(self.home), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )

    def json(self, command: str, *, code: int = 0) -> Any:
        done = self(f"{command} --json")
        assert done.returncode == code, (command, done.stdout, done.stderr)
        return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_commands_with_spark_need_nothing_that_came_before(tmp_path: Path) -> None:
    rivermark = Console(tmp_path)
    # A ride every 20 seconds from noon on: the first day ends, and is closed, with ride 2,200.
    landed = rivermark("drip --clock training --rate 0 --rides 3000 --late 0.01")
    assert landed.returncode == 0, landed.stderr

    run = rivermark.json("run taxi/long_rides taxi/driver_tips --upstream")
    counts = {each["stream"]: each for each in run["streams"]}
    assert counts["taxi/ride_events"]["admitted"] > 5000
    assert counts["taxi/driver_tips"]["rows_out"] > 0

    (state,) = rivermark.json("state show --group taxi_events --limit 3")
    assert state["stream"] == "taxi/long_rides"
    assert len(state["shown"]) == min(3, state["keys"])
    assert state["bytes"] > 0

    days = "--from 2020-01-01 --to 2020-01-01"
    (compared,) = rivermark.json(f"reprocess taxi/driver_tips {days} --dry-run")
    assert (compared["kind"], compared["stream"]) == ("rehearsed", "taxi/driver_tips")
    assert compared["tables"]["taxi/driver_tips"]["changed"] == 0
    assert {each["matches"] for each in rivermark.json("verify taxi/driver_tips")} == {True}
    (replay,) = rivermark.json(f"replay-ingest taxi/fare_events {days}")["replays"]
    assert replay["rows"] > 0
    assert replay["rows_changed"] == 0

    late = rivermark.json("merge-late --group taxi_events --dry-run")["days"]
    assert sum(day["rows"] for day in late) > 0
    merged = rivermark.json("merge-late taxi/fare_events")
    assert sum(day["rows_merged"] for day in merged["days"]) > 0
    (file,) = rivermark.json("files taxi/fare_events --limit 1")["streams"][0]["files"]
    (again,) = rivermark.json(f"retake taxi/fare_events {file['name']}")["files"]
    assert again["now"]["rows"] == again["former"]["rows"] == file["rows"]

    checks = rivermark("checks --group taxi_events")
    assert checks.returncode in (0, 3), checks.stdout
