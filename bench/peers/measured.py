"""One run of one engine, and the runs that were kept."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from bench.figures import ROOT
from bench.peers.engines import Engine
from bench.process_tree import TreeMeter, end_tree

PATIENCE_SECONDS = 1200


@dataclass(frozen=True)
class Run:
    """What one run came to. `wrong` says why its figures do not count, empty where they do."""

    engine: str
    workload: str
    size: int
    events: int
    repeat: int
    wall: float
    cpu: float
    peak_mb: int
    load: float
    commit: str
    wrong: str = ""

    @property
    def cell(self) -> tuple[str, str, int]:
        """What was measured."""
        return (self.workload, self.engine, self.size)


def measure(
    engine: Engine, workload: str, data: Path, out: Path, variables: dict[str, str]
) -> tuple[float, float, int, str]:
    """Run an engine in a process of its own: wall seconds, CPU seconds, peak MB, what went wrong.

    CPU seconds are the larger of two counts: of the tree sampled while it lived, and of the
    children that the system saw end.
    """
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **variables, "PYTHONPATH": str(ROOT)}
    with out.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(
            engine.command(workload, data, out), stdout=log, stderr=log, cwd=ROOT, env=environment
        )
        meter = TreeMeter(psutil.Process(process.pid))
        try:
            code = process.wait(PATIENCE_SECONDS)
            wrong = f"ended with {code}" if code else ""
        except subprocess.TimeoutExpired:
            end_tree(process)
            wrong = f"no end after {PATIENCE_SECONDS} s"
    cost = meter.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cost.wall, max(cost.cpu, ended), round(cost.peak_rss / 1e6), wrong


def keep(file: Path, run: Run) -> None:
    """Add a run to those that were kept."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(run)) + "\n")


def kept(file: Path) -> list[Run]:
    """The runs that were kept."""
    if not file.exists():
        return []
    return [Run(**json.loads(line)) for line in file.read_text().splitlines()]
