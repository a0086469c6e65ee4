"""`rivermark fsck`, on a machine without Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rivermark.settings import Settings
from tests.damaged_lake import LONG, DamagedLake
from tests.unit.cli.conftest import Run


def test_exit_code_text_and_json_say_what_is_wrong_and_what_was_repaired(
    rivermark: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = DamagedLake(settings.home)
    world.grow(3)
    for name in ("JAVA_HOME", "PATH"):
        monkeypatch.setenv(name, "/nowhere")
    whole = rivermark("fsck")
    assert (whole.exit_code, whole.stderr.strip()) == (0, "")
    assert "0 faults" in whole.stdout

    sums = Path(world.lake.path(LONG), "_delta_log", f"{2:020d}.crc")
    sums.write_text("half")
    damaged = rivermark("fsck", LONG.name, "--quick")
    assert damaged.exit_code == 1
    assert f"fault: {LONG.name}: {sums} is damaged" in damaged.stdout
    assert "1 tables" in damaged.stdout

    repaired = rivermark("fsck", LONG.name, "--repair", "--json")
    assert repaired.exit_code == 0
    answer = json.loads(repaired.stdout)
    assert (answer["faults"], answer["tables"]) == (0, [LONG.name])
    (finding,) = answer["findings"]
    assert (finding["path"], finding["repaired"]) == (str(sums), True)


def test_the_help_says_what_it_repairs(rivermark: Run) -> None:
    text = " ".join(rivermark("fsck", "--help").stdout.split())
    assert "Starts no Spark" in text
    assert "--repair rewrites damaged checksum files" in text
    assert "The exit code is 1 if a fault is left." in text
    assert "rivermark fsck --quick --json" in text
