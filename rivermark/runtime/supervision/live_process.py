"""Processes by number and start: numbers are used again."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import psutil

Began = str | float
"""When a process began, as `began_at` says it; seconds since 1970 in what earlier releases wrote.

Those move with each step of the machine's clock: psutil adds the moment of the boot, which the
kernel counts back from now.
"""
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""A name that each start of the machine gets."""


def began_at(pid: int) -> Began:
    """When a process began: the boot's name and the ticks since then, where the kernel says them.

    Raises psutil.NoSuchProcess.
    """
    process = psutil.Process(pid)
    try:
        ticks = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
        return f"{BOOT.read_text().strip()}/{int(ticks)}"
    except (OSError, IndexError, ValueError):
        return float(process.create_time())


def live_process(pid: int | None, began: Began | None) -> psutil.Process | None:
    """The live process of that number and start, and no later one of the same number."""
    if pid is None or began is None:
        return None
    try:
        process = psutil.Process(pid)
        if isinstance(began, str):
            same = began_at(pid) == began
        else:
            # Two seconds: the kernel's boot time, from which starts are counted, can shift by one.
            same = abs(process.create_time() - began) < 2
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None
