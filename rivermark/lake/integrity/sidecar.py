"""Checksum files as Hadoop keeps them on a local disk: `.name.crc` beside `name`.

Spark writes one beside every file that it writes there, and refuses a file that does not agree with
its own. delta-rs writes none: those that are written here for table checkpoints serve both.

Format: `crc` and a zero byte, the bytes of a chunk, then the CRC-32 of each chunk, big-endian.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import write_file

MAGIC: Final = b"crc\0"
CHUNK: Final = 512
HEADER: Final = 8
"""Bytes before the first checksum."""


def sidecar_of(path: Path) -> Path:
    """The path of a file's checksums."""
    return path.with_name(f".{path.name}.crc")


def chunk_sums(content: bytes) -> bytes:
    """The content of the checksum file."""
    sums = [zlib.crc32(content[at : at + CHUNK]) for at in range(0, len(content), CHUNK)]
    return MAGIC + struct.pack(f">I{len(sums)}I", CHUNK, *sums)


def write_sidecar(path: Path, *, durable: bool = False) -> None:
    """Write the checksum file of a file that is written."""
    write_file(str(sidecar_of(path)), chunk_sums(path.read_bytes()), durable=durable)


def delete_with_sidecar(path: Path) -> None:
    """Delete a file and its checksum file, where there are any."""
    path.unlink(missing_ok=True)
    sidecar_of(path).unlink(missing_ok=True)


def agrees(path: Path, content: bytes | None = None) -> bool | None:
    """Returns True if a file agrees with its checksum file; None without one that could tell."""
    sums = _sums_of(path)
    if sums is None:
        return None
    return chunk_sums(path.read_bytes() if content is None else content) == sums


def end_agrees(path: Path, start: int) -> bool | None:
    """As `agrees`, of what a file holds from a place to its end alone."""
    sums = _sums_of(path)
    if sums is None:
        return None
    chunk = start // CHUNK
    with path.open("rb") as file:
        file.seek(chunk * CHUNK)
        return chunk_sums(file.read())[HEADER:] == sums[HEADER + 4 * chunk :]


def _sums_of(path: Path) -> bytes | None:
    try:
        sums = sidecar_of(path).read_bytes()
    except FileNotFoundError:
        return None
    return sums if sums[:HEADER] == MAGIC + struct.pack(">I", CHUNK) else None
