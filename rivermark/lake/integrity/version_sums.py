"""Content of a version checksum file, and whether it can be believed.

To Delta's fields ours adds `rivermark`: the version, the CRC-32 of the log entry beside it, and
that of the file itself. By the entry's a change to it is noticed that leaves it readable, by the
others one to the checksum file, which is only a help. Other readers pass over the field.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final

Checksum = dict[str, Any]
"""The content of a checksum file."""

OWN: Final = "rivermark"
VERSION: Final = "version"
ENTRY: Final = "entry"
SELF: Final = "self"
REQUIRED: Final = ("tableSizeBytes", "numFiles", "metadata", "protocol")


def sums_text(sums: Checksum, version: int, entry: bytes | None) -> bytes:
    """The content of the file, for a version with that log entry."""
    own = {VERSION: version, **({} if entry is None else {ENTRY: zlib.crc32(entry)})}
    content = {**sums, OWN: {**own, SELF: zlib.crc32(_compact({**sums, OWN: own}))}}
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def sums_in(content: bytes, version: int) -> Checksum | None:
    """The sums that the file of a version holds; None where it is damaged or lacks some."""
    try:
        sums = json.loads(content)
    except ValueError:
        return None
    if not isinstance(sums, dict) or any(sums.get(name) is None for name in REQUIRED):
        return None
    if OWN in sums:
        own = sums[OWN]
        if not isinstance(own, dict) or own.get(VERSION, version) != version:
            return None
        rest = {name: value for name, value in own.items() if name != SELF}
        if own.get(SELF) != zlib.crc32(_compact({**sums, OWN: rest})):
            return None
    return sums


def entry_agrees(sums: Checksum, entry: bytes) -> bool | None:
    """True if a log entry is the one that its checksum file was made for; None where not said."""
    known = sums.get(OWN, {}).get(ENTRY)
    return None if known is None else known == zlib.crc32(entry)


def _compact(content: Checksum) -> bytes:
    """A text that does not depend on how the file escapes letters."""
    return json.dumps(content, separators=(",", ":")).encode()
