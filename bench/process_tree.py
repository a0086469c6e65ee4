"""What a process and all its children cost: CPU seconds and resident memory, sampled."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import psutil

SAMPLE_SECONDS = 0.1


@dataclass
class Cost:
    """CPU seconds and the peak of resident memory (bytes) of a process tree, and wall seconds."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_rss: int = 0


@dataclass
class TreeMeter:
    """Samples a process tree every 100 ms from a thread; read `cost` at any time.

    CPU of children that ended is kept from their last sample. A process younger than half a second
    is not counted in memory: just forked, it still shows its parent's pages.
    """

    root: psutil.Process
    cost: Cost = field(default_factory=Cost)
    _cpu: dict[int, float] = field(default_factory=dict)
    _ending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Start sampling."""
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ending.wait(SAMPLE_SECONDS):
            self.look()

    def look(self) -> Cost:
        """Take one sample now, and give the cost so far."""
        rss = 0
        try:
            tree = [self.root, *self.root.children(recursive=True)]
        except psutil.Error:
            tree = []
        for process in tree:
            try:
                times = process.cpu_times()
                self._cpu[process.pid] = times.user + times.system
                if time.time() - process.create_time() > 0.5:
                    rss += process.memory_info().rss
            except psutil.Error:
                continue
        self.cost.peak_rss = max(self.cost.peak_rss, rss)
        self.cost.cpu = sum(self._cpu.values())
        self.cost.wall = time.monotonic() - self._began
        return self.cost

    def stop(self) -> Cost:
        """End sampling, and give the whole cost."""
        self._ending.set()
        self._thread.join()
        return self.cost
