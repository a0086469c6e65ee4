"""Processes by number and start: numbers are used again. And what ends one, or a lease."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Final

import psutil

BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
"""A name that each start of the machine gets."""

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


def start_of(pid: int) -> str | None:
    """The beginning of a process, by the boot's name and the ticks since then; None without both.

    Its moment moves with each step of the clock: the kernel counts the boot back from now.
    """
    try:
        ticks = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19]
        return f"{BOOT.read_text().strip()}/{int(ticks)}"
    except (OSError, IndexError, ValueError):
        return None


def live_process(
    pid: int | None, began: float | None, start: str | None = None
) -> psutil.Process | None:
    """The live process of that number and start, and no later one of the same number.

    `began` (seconds since 1970) counts where `start` is not known, as in what earlier releases
    wrote.
    """
    if pid is None or began is None:
        return None
    try:
        process = psutil.Process(pid)
        # Two seconds: the kernel's boot time, from which starts are counted, can shift by one.
        near = abs(process.create_time() - began) < 2
        same = near if start is None else start_of(pid) == start
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


def is_zombie(pid: int) -> bool:
    """Returns True if a process has ended and only waits to be forgotten, or is not there."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


@dataclass(frozen=True, kw_only=True)
class Owner:
    """Who holds, or last held, a lease; processes are identified by number and start.

    `pid_start` and `jvm_start` are those of `start_of`, the others seconds since 1970.

    `token` is larger than that of every owner before it.
    """

    run_id: str
    pid: int
    pid_began: float
    host: str
    at: datetime
    jvm_pid: int | None = None
    jvm_began: float | None = None
    released: bool = False
    token: int = 0
    pid_start: str | None = None
    jvm_start: str | None = None


def on_interrupt(handler: Handler) -> None:
    """Handle SIGINT, SIGTERM, and a terminal that is closed, unless `nohup` keeps that away.

    Also where a shell started this in the background, with SIGINT ignored: a process begins with
    what its parent ignores.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)
