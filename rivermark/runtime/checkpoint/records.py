"""Our own records in a checkpoint: small JSON files, each with a checksum of what it says.

A changed digit in one would name another checkpoint, or look for keys in other buckets.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from rivermark.lake.filesystem import content_of, filesystem, write_file
from rivermark.lake.integrity.fault import Fault
from rivermark.model.errors import CheckpointIncompatible
from rivermark.runtime.checkpoint.integrity import put_back

T = TypeVar("T")
CHECK: Final = "check"
"""Where a record keeps its checksum; records of earlier releases have none."""


def write(path: str, value: object) -> None:
    """Write a record, whole or not at all."""
    content: dict[str, Any] = msgspec.to_builtins(value)
    write_file(path, json.dumps({**content, CHECK: _checksum(content)}).encode())


def read(path: str, kind: type[T], stream: str) -> T | None:
    """The record in a file; None where there is none.

    Raises CheckpointIncompatible where it is damaged.
    """
    store, place = filesystem(path)
    text = content_of(store, place)
    if text is None:
        return None
    try:
        _check_unchanged(text)
        return msgspec.json.decode(text, type=kind)
    except ValueError as error:
        raise CheckpointIncompatible(
            f"stream '{stream}': {place} is damaged ({error}). {put_back(stream)}"
        ) from error


def faults_of_records(folder: Path, stream: str) -> Iterator[Fault]:
    """Faults in the records of a checkpoint on this machine's disk."""
    for path in sorted(folder.glob("*.json")):
        try:
            _check_unchanged(path.read_bytes())
        except ValueError as error:
            yield Fault(str(path), f"is damaged ({error})", put_back(stream))


def _check_unchanged(text: bytes) -> None:
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("it is no record")
    if content.pop(CHECK, None) not in (None, _checksum(content)):
        raise ValueError("it was changed")


def _checksum(content: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())
