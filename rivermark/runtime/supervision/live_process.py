"""Processes by number and start: numbers are used again."""

from __future__ import annotations

import psutil


def live_process(pid: int | None, began: float | None) -> psutil.Process | None:
    """The live process of that number and start, and no later one of the same number."""
    if pid is None or began is None:
        return None
    try:
        process = psutil.Process(pid)
        # Two seconds: the kernel's boot time, from which starts are counted, can shift by one.
        same = abs(process.create_time() - began) < 2
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
