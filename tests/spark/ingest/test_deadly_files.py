"""A file that ends the engine or the process at each reading stops no stream (case N040)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rivermark.ingest.admission import Admission
from rivermark.model.source import PlannedSplit
from rivermark.model.table import Table
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, reading, readings

pytestmark = [pytest.mark.spark, pytest.mark.long]

INGEST = readings(max_row_bytes=200)
"""The readings, with a bound that a text of a test passes."""
ROOT = Path(__file__).parents[3]


def test_n040_a_file_that_kills_is_found_out_and_the_others_come_in(
    settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0), reading(1, note="x" * 200))
    landing.put(f"{FOLDER}/2.json", reading(2, "DEADLY"))
    landing.put(f"{FOLDER}/3.json", reading(3))

    # The engine dies twice with the batch and twice with the file alone; then all is well.
    ends = [start(settings, "engine"), *(start(settings, "process") for _ in range(3))]
    assert [code == 0 for code in ends] == [False] * 4
    assert rows(settings, INGEST.admitted) == []
    assert start(settings, "process") == 0

    assert [row["_file"] for row in rows(settings, INGEST.admitted)] == ["1.json", "3.json"]
    reasons = {row["_file"]: row["reasons"] for row in rows(settings, INGEST.quarantine)}
    assert reasons["1.json"] == ["row_too_large"]
    assert [r.split(":")[0] for r in reasons["2.json"]] == ["file_ends_the_engine"]


def start(settings: Settings, victim: str) -> int:
    """Run the ingest once in a process of its own, which reading a deadly file ends."""
    command = [sys.executable, "-m", "tests.spark.ingest.test_deadly_files"]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [*command, str(settings.home), victim],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
        capture_output=True,
        timeout=300,
    )
    return ended.returncode


def rows(settings: Settings, table: Table) -> list[dict[str, Any]]:
    lake = settings.lake()
    if not lake.exists(table):
        return []
    found: list[dict[str, Any]] = DeltaTable(lake.path(table)).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: row["_file"])


def main(home: str, victim: str) -> None:
    """What the process does."""
    from rivermark import Topology
    from rivermark.runtime.spark.session import open_session
    from rivermark.runtime.supervision.run import run_bounded

    settings = Settings(home=Path(home), trigger_seconds=0.1)
    spark = open_session(settings, kind="short")
    parse = Admission._parse

    def kill(self: Admission, splits: Sequence[PlannedSplit], *args: Any, **more: Any) -> Any:
        if any("DEADLY" in Path(split.path).read_text() for split in splits):
            if victim == "process":
                os.kill(os.getpid(), signal.SIGKILL)
            os.kill(spark._jvm.ProcessHandle.current().pid(), signal.SIGKILL)  # type: ignore[union-attr]
            spark.range(1).count()  # As tasks that read it: the driver alone needs no engine.
        return parse(self, splits, *args, **more)

    Admission._parse = kill  # type: ignore[method-assign]
    run_bounded(spark, settings, Topology([INGEST]), [INGEST], run_id="run")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
