"""Landed JSON lines as the door must take them: per file, in the order of landing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

Event = dict[str, Any]


@dataclass
class Accepted:
    """What became of each landed row; `newest` is the newest valid event time (UTC)."""

    admitted: list[Event] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    newest: datetime | None = None


def accept(folder: Path, lateness: timedelta) -> Accepted:
    """Admit each row newer than the newest of earlier files less the lateness; others are late."""
    result = Accepted()
    for rows in files(folder):
        watermark = result.newest - lateness if result.newest else None
        for row in rows:
            late = watermark is not None and row["event_time"] <= watermark
            (result.late if late else result.admitted).append(row)
        times = [row["event_time"] for row in rows]
        result.newest = max([*times, result.newest] if result.newest else times)
    return result


def once(events: Iterable[Event], *keys: str) -> list[Event]:
    """Each event once, told by its keys: the first to come."""
    first: dict[tuple[Any, ...], Event] = {}
    for event in events:
        first.setdefault(tuple(event[k] for k in keys), event)
    return list(first.values())


def files(folder: Path) -> list[list[Event]]:
    """The rows of each file, files by (modification time, path); numbers exact, times aware."""
    found = sorted(
        (f for f in folder.iterdir() if f.name[0] not in "._"),
        key=lambda f: (f.stat().st_mtime_ns, f.as_posix()),
    )
    return [[event(line) for line in text(f).splitlines()] for f in found]


def text(file: Path) -> str:
    """The text of a file, unpacked where it is gzipped."""
    content = file.read_bytes()
    return (gzip.decompress(content) if file.suffix == ".gz" else content).decode()


def event(line: str) -> Event:
    """One row: every number with a point a Decimal, every field named like a time a time."""
    row: Event = json.loads(line, parse_float=Decimal)
    for name, value in row.items():
        if name.endswith("_time") and value is not None:
            row[name] = datetime.fromisoformat(value)
    return row


def window_start(moment: datetime, size: timedelta) -> datetime:
    """The start of the window that a moment (UTC) lies in; windows are multiples since 1970."""
    epoch = datetime.fromtimestamp(0, moment.tzinfo)
    return epoch + (moment - epoch) // size * size
