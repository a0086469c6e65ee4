"""The demo on a standalone cluster of Spark, one of whose executors is killed, equals a local one.

Master, workers and executors are processes of this machine, from PySpark's own package.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.spark_cluster import cluster, executors
from tests.stories.deployment import ROOT

RUN_COLUMNS = {"_ingested_at", "_landed_at", "_arrival", "_ingest_batch"}
"""Columns of a row that tell of the run that read it."""
WORKED = 8.0
"""Seconds that an executor has lived before it is killed; a demo takes half a minute."""
LANDED_AT = re.compile(r"\d{8}T\d{6}\.\d{3}Z")
"""The moment at which a replayed file was landed, in its name."""


def demo(home: Path, **environment: str) -> None:
    """`rivermark demo` as a person calls it."""
    done = subprocess.run(
        [str(Path(sys.executable).with_name("rivermark")), "demo"],
        cwd=ROOT,
        env={**os.environ, "RIVERMARK_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def published(home: Path) -> dict[str, list[str]]:
    """The rows of each table of a domain, as texts."""
    tables = {}
    root = home / "lake" / "tables"
    for log in sorted(root.rglob("_delta_log")):
        name = log.parent.relative_to(root).as_posix()
        if name.startswith("ops/"):
            continue
        rows: pa.Table = DeltaTable(log.parent).to_pyarrow_table()
        kept = rows.select([c for c in rows.column_names if c not in RUN_COLUMNS])
        with duckdb.connect() as duck:
            duck.register("rows", kept)
            texts = duck.execute("SELECT CAST(rows AS VARCHAR) FROM rows").fetchall()
        tables[name] = sorted(LANDED_AT.sub("", text) for (text,) in texts)
    return tables


@pytest.mark.slow
@pytest.mark.story
def test_the_demo_on_a_cluster_that_loses_an_executor_equals_a_local_one(tmp_path: Path) -> None:
    demo(tmp_path / "local")
    killed: list[int] = []
    ended = threading.Event()

    def kill_one() -> None:
        while not ended.wait(0.5):
            # One that has worked for a while, so that tasks and state are lost with it.
            for executor in executors():
                if time.time() - executor.create_time() > WORKED:
                    executor.kill()
                    killed.append(executor.pid)
                    return

    with cluster(tmp_path / "cluster") as master:
        killer = threading.Thread(target=kill_one)
        killer.start()
        try:
            demo(tmp_path / "remote", RIVERMARK_MASTER=master, RIVERMARK_EXECUTOR_MEMORY="1g")
        finally:
            ended.set()
            killer.join()

    assert killed
    local, remote = published(tmp_path / "local"), published(tmp_path / "remote")
    assert len(local) > 40
    assert local.keys() == remote.keys()
    assert [name for name in local if local[name] != remote[name]] == []


@pytest.mark.story
def test_executors_whose_python_lacks_the_packages_are_named(tmp_path: Path) -> None:
    code = (
        "from rivermark.runtime.spark.session import open_session\n"
        "from rivermark.settings import Settings\n"
        f"open_session(Settings(home={str(tmp_path / 'home')!r}))\n"
    )
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    with cluster(tmp_path / "cluster", workers=1) as master:
        refused = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={
                **os.environ,
                "RIVERMARK_MASTER": master,
                "RIVERMARK_EXECUTOR_MEMORY": "1g",
                "RIVERMARK_EXECUTOR_PYTHON": str(bare / "bin" / "python"),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert refused.returncode != 0
    last = refused.stderr.strip().splitlines()[-1]
    assert f"executors of {master}" in last
    assert "have rivermark none, the driver has" in last
    assert "RIVERMARK_EXECUTOR_PYTHON" in last
