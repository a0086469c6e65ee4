"""`rivermark fsck` in a process of its own, on a machine without Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rivermark.cli.main import app
from tests.damaged_lake import LONG, DamagedLake


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> DamagedLake:
    found = DamagedLake(tmp_path_factory.mktemp("home"))
    found.grow(3)
    return found


def rivermark(world: DamagedLake, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The console as a user starts it, with no Java to be found."""
    assert app is not None
    environment = os.environ | {
        "RIVERMARK_HOME": str(world.settings.home),
        "JAVA_HOME": "/nowhere",
        "PATH": "/nowhere",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    code = "from rivermark.cli.main import app; app()"
    return subprocess.run(
        [sys.executable, "-c", code, "fsck", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_exit_code_text_and_json_say_what_is_wrong_and_what_was_repaired(
    world: DamagedLake,
) -> None:
    whole = rivermark(world)
    assert (whole.returncode, whole.stderr.strip()) == (0, "")
    assert "0 faults" in whole.stdout

    sums = Path(world.lake.path(LONG), "_delta_log", f"{2:020d}.crc")
    sums.write_text("half")
    damaged = rivermark(world, LONG.name, "--quick")
    assert damaged.returncode == 1
    assert f"fault: {LONG.name}: {sums} is damaged" in damaged.stdout
    assert "1 tables" in damaged.stdout

    repaired = rivermark(world, LONG.name, "--repair", "--json")
    assert repaired.returncode == 0
    answer = json.loads(repaired.stdout)
    assert (answer["faults"], answer["tables"]) == (0, [LONG.name])
    (finding,) = answer["findings"]
    assert (finding["path"], finding["repaired"]) == (str(sums), True)


def test_the_help_says_what_it_repairs(world: DamagedLake) -> None:
    text = " ".join(rivermark(world, "--help").stdout.split())
    assert "Starts no Spark" in text
    assert "--repair rewrites damaged checksum files" in text
    assert "The exit code is 1 where a fault is left." in text
    assert "rivermark fsck --quick --json" in text
