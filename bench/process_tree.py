"""What a process and all its children cost: CPU seconds and resident memory, sampled."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from bench.figures import ROOT

SAMPLE_SECONDS = 0.1


@dataclass
class Cost:
    """CPU seconds and the peak of resident memory (bytes) of a process tree, and wall seconds.

    `largest` is the peak of one process, by kind of process where these are told apart.
    """

    wall: float = 0.0
    cpu: float = 0.0
    peak_rss: int = 0
    largest: dict[str, int] = field(default_factory=dict)

    def figures(self, name: str) -> dict[str, float]:
        """The cost as figures whose names begin with `name`."""
        return {
            f"{name}_wall_seconds": round(self.wall, 2),
            f"{name}_cpu_seconds": round(self.cpu, 2),
            f"{name}_peak_rss_mb": round(self.peak_rss / 1e6),
            **{f"{name}_{kind}_rss_mb": round(rss / 1e6) for kind, rss in self.largest.items()},
        }


@dataclass
class TreeMeter:
    """Samples a process tree every 100 ms from a thread; read `cost` at any time.

    CPU of children that ended is kept from their last sample. A process younger than half a second
    is not counted in memory: just forked, it still shows its parent's pages. Without `with_root`
    only what is below the root counts.
    """

    root: psutil.Process
    kind_of: Callable[[psutil.Process], str] | None = None
    with_root: bool = True
    cost: Cost = field(default_factory=Cost)
    _cpu: dict[int, float] = field(default_factory=dict)
    _before: float = 0.0
    _ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Start sampling."""
        self._began = time.monotonic()
        self._before = self.sample().cpu
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ending.wait(SAMPLE_SECONDS):
            self.sample()

    def sample(self) -> Cost:
        """Take one sample now, and return the cost so far."""
        rss = 0
        try:
            tree = self.root.children(recursive=True)
            tree += [self.root] if self.with_root else []
        except psutil.Error:
            tree = []
        for process in tree:
            try:
                times = process.cpu_times()
                self._cpu[process.pid] = times.user + times.system
                if time.time() - process.create_time() > 0.5:
                    own = process.memory_info().rss
                    rss += own
                    if self.kind_of is not None:
                        kind = self.kind_of(process)
                        self.cost.largest[kind] = max(self.cost.largest.get(kind, 0), own)
            except psutil.Error:
                continue
        self.cost.peak_rss = max(self.cost.peak_rss, rss)
        self.cost.cpu = sum(self._cpu.values()) - self._before
        self.cost.wall = time.monotonic() - self._began
        return self.cost

    def stop(self) -> Cost:
        """End sampling, and return the whole cost."""
        self._ending.set()
        self._thread.join()
        return self.cost


def run_measured(
    command: Sequence[str],
    log: Path,
    tree: psutil.Process | None = None,
    kind_of: Callable[[psutil.Process], str] | None = None,
) -> tuple[Cost, list[dict[str, Any]]]:
    """Run a command to its end: its cost, and the JSON objects that it printed, one a line.

    The cost is that of its own processes, or of all below another one, which may be this one.

    Raises:
        SystemExit: where it fails, with the end of `log`, which gets its standard error.
    """
    with log.open("a") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        meter = TreeMeter(tree or psutil.Process(process.pid), kind_of, with_root=tree is None)
        assert process.stdout is not None
        printed = [json.loads(line) for line in process.stdout if line.startswith("{")]
        code = process.wait()
        cost = meter.stop()
    if code:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()[-3000:]}")
    return cost, printed


def start_measured(
    command: Sequence[str], log: Path, variables: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Start a command that runs until `end_tree`, with `variables` in its environment.

    What it prints is for the caller to read; `log` gets its standard error.
    """
    with log.open("w") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **variables, "PYTHONPATH": str(ROOT)},
        )


def end_tree(process: subprocess.Popen[Any]) -> None:
    """End a process and all that it started, and wait for it."""
    root = psutil.Process(process.pid)
    for each in [*root.children(recursive=True), root]:
        with suppress(psutil.Error):
            each.kill()
    process.wait()
