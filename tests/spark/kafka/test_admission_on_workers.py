"""Two workers admit what the driver admits: each format and a topic, though an executor dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable

from rivermark import Table
from rivermark.settings import Settings
from tests.spark.helpers.admission_on_workers import (
    ALL_TASKS,
    FILES,
    FORMATS,
    NO_TASKS,
    ROWS,
    land,
    lines_of,
    topic_of,
)
from tests.spark.helpers.kafka import Topics
from tests.spark_cluster import cluster, executors

pytestmark = [pytest.mark.spark, pytest.mark.long]


def admit(home: Path, master: str, topics: Topics, topic: str, most: int) -> None:
    """Admit everything in a process of its own."""
    words = [str(home), master, topics.brokers, topic, str(most)]
    paths = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.helpers.admission_on_workers", *words],
        env={**os.environ, "PYTHONPATH": paths, "RIVERMARK_EXECUTOR_MEMORY": "512m"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def rows(home: Path, table: Table) -> list[str]:
    """Every row, without the moments at which a run found and wrote it."""
    found = DeltaTable(Settings(home=home).lake().path(table)).to_pyarrow_table()
    kept = [name for name in found.column_names if name not in ("_ingested_at", "_landed_at")]
    return sorted(map(str, found.select(kept).to_pylist()))


def test_two_workers_of_which_one_is_killed_admit_what_the_driver_admits(
    tmp_path: Path, topics: Topics
) -> None:
    topic = topics.make(partitions=2)
    for number in range(2):
        topics.send(topic, map(str.encode, lines_of(number)), partition=number)
    homes = {name: tmp_path / name for name in ("driver", "workers")}
    for home in homes.values():
        land(Path(Settings(home=home).landing_root))
    admit(homes["driver"], "local[2]", topics, topic, NO_TASKS)

    raw = Path(Settings(home=homes["workers"]).lake().path(FILES.raw))
    ended, killed = threading.Event(), list[psutil.Process]()

    def kill_one() -> None:
        """Once tasks have written rows that no commit names."""
        while not ended.wait(0.01) and not killed:
            if [*raw.glob("*.parquet")]:
                assert DeltaTable(raw).file_uris() == []
                killed.extend(executors()[:1])
                killed[0].kill()

    with cluster(tmp_path, workers=2) as master:
        killer = threading.Thread(target=kill_one)
        killer.start()
        admit(homes["workers"], master, topics, topic, ALL_TASKS)
        ended.set()
        killer.join()
        started = [len(list((tmp_path / f"work{n}").glob("app-*/*/stderr"))) for n in (0, 1)]
    assert len(killed) == 1
    assert sum(started) == 3, "another executor took the place of the one that was killed"

    for ingest in (FILES, topic_of(topics.brokers, topic)):
        for table in ingest.tables:
            by_driver, by_workers = (rows(home, table) for home in homes.values())
            assert by_workers == by_driver, table.name
            # Partitions of one round are side by side: none of their rows is late.
            assert by_driver or table.name == "test/messages_late"
    assert len(rows(homes["driver"], FILES.raw)) == ROWS * len(FORMATS)
