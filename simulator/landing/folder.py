"""A landing folder that one writer fills with numbered files."""

import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa

from rivermark.testing.landing import Landed, land

NUMBERED: Final = re.compile(r"^part-(\d{8,})-")


class LandingFolder:
    """Lands files `part-<number>-<UTC time><ending>`, numbers and modification times both rising.

    Opened on a folder that holds files already, it goes on behind them. Assumes that it is the only
    writer of the folder while it is in use.
    """

    def __init__(self, path: Path, ending: str = ".json") -> None:
        self.path = path
        self._ending = ending
        path.mkdir(parents=True, exist_ok=True)
        landed = files_in_landing_order(path)
        numbers = [int(number[1]) for file in landed if (number := NUMBERED.match(file.name))]
        self.next_number = max(numbers, default=-1) + 1
        self._last_ms = max((_modified_ms(file) for file in landed), default=-1)

    def land(self, content: Iterable[str] | pa.Table, *, name: str | None = None) -> Landed:
        """Land the next file, under `name` where it was promised beforehand."""
        landed = land(self.path / (name or self.next_name()), content, after_ms=self._last_ms)
        self.next_number += 1
        self._last_ms = landed.modified_ms
        return landed

    def next_name(self) -> str:
        """The name of the next file: its number and the present time."""
        now = datetime.fromtimestamp(time.time(), UTC)
        moment = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"
        return f"part-{self.next_number:08d}-{moment}{self._ending}"


def files_in_landing_order(folder: Path) -> list[Path]:
    """The visible files of a folder by (modification time in milliseconds, path), as read."""
    files = [file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._"]
    return sorted(files, key=lambda file: (_modified_ms(file), file.as_posix()))


def _modified_ms(file: Path) -> int:
    return file.stat().st_mtime_ns // 1_000_000
