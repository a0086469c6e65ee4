"""Small JSON files that one process writes and several read: whole or missing, never half."""

from __future__ import annotations

import fcntl
import os
import re
import time
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rivermark.lake.filesystem import write_file
from rivermark.lake.full_disk import is_disk_full
from rivermark.model.errors import UnknownStream

T = TypeVar("T")

NAME: Final = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*")
"""Names of streams and groups. Anything else could point outside the state folder."""


class UnreadableState(Exception):
    """A state file is there and cannot be understood; the message names the file and the reason."""


def path_for(folder: Path, name: str, suffix: str = ".json") -> Path:
    """The file of a stream or group: '/' becomes '.', which no name contains.

    Raises UnknownStream for a text that cannot be a name, such as one with '..'.
    """
    if not NAME.fullmatch(name):
        raise UnknownStream(f"{name!r} cannot be the name of a stream or group")
    return folder / f"{name.replace('/', '.')}{suffix}"


def name_of(path: Path) -> str:
    """The stream or group that a file in a state folder belongs to."""
    return path.stem.replace(".", "/")


def write(path: Path, value: object, *, durable: bool = True) -> None:
    """Put `value` into the file in one step: a reader sees the old content or the new.

    On a full disk a file that need not be durable is written over, which takes no space: a
    heartbeat has to say that the disk is full.
    """
    content = msgspec.json.encode(value)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_file(str(path), content, durable=durable)
    except OSError as error:
        if durable or not is_disk_full(error) or not path.exists():
            raise
        with path.open("r+b", buffering=0) as file:
            # One write, and none less: spaces behind the value mean nothing.
            file.write(content.ljust(path.stat().st_size))


def read(path: Path, kind: type[T]) -> T | None:
    """The content of the file, or None where there is none; UnreadableState says why not."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableState(f"{path}: {error.strerror}") from error
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableState(f"{path}: {error}") from error


def lock(path: Path, seconds: float) -> int | None:
    """Lock a file for this process; None where another one holds the lock for so long.

    Returns the file's descriptor. To close it, or the end of the process, gives the lock back.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            os.close(descriptor)
            return None
        return descriptor
