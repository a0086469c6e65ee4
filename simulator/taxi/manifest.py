"""What a landing run intends and did, as JSON lines beside the landing folder.

The first line declares the run; then, before each file lands, one line records its name and what it
holds. A run that is killed leaves at most one announced file that never landed, and at most one
line without end; both are undone when the run is taken up again.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from rivermark.lake.filesystem import write_file

Declaration = Mapping[str, str | int | float | bool | None]


class ManifestMismatch(ValueError):
    """The manifest at this path was started by a run with another declaration."""


class Announced(msgspec.Struct, frozen=True, omit_defaults=True):
    """One landing file: its folder below the landing root, its name, and its rows.

    `events` holds for each event its key and what befell it on the way: fresh, late, duplicate, or
    lost (not in the file; it would have been in this one). Left out where a run's rows are all
    alike. `hours` counts the events by hour of event time (UTC), the lost ones among them: what a
    reader who missed nothing would have seen (rivermark.monitor.completeness.expected_volume).
    """

    folder: str
    file: str
    rows: int
    events: tuple[tuple[tuple[int, ...], str], ...] = ()
    hours: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class ManifestRecord:
    """A manifest as read: the declaration, and the files that landed."""

    declaration: dict[str, str | int | float | bool | None]
    files: list[Announced]


class _Head(msgspec.Struct):
    declaration: dict[str, str | int | float | bool | None]


_LINE: Final = msgspec.json.Decoder(Announced)
_HEAD: Final = msgspec.json.Decoder(_Head)


def read_manifest(path: Path, landing: Path) -> ManifestRecord:
    """What a run declared and landed, also when it was killed; FileNotFoundError without manifest.

    `landing` is the landing root, to check whether the last announced file exists.
    """
    # A line without end was cut off by a kill, before its file landed.
    head, *lines = path.read_bytes().split(b"\n")[:-1] or [b'{"declaration":{}}']
    files = [_LINE.decode(line) for line in lines]
    if files and not (landing / files[-1].folder / files[-1].file).exists():
        files.pop()
    return ManifestRecord(_HEAD.decode(head).declaration, files)


class Manifest:
    """The manifest that one run writes; a second run with the same declaration goes on in it."""

    def __init__(self, path: Path, landing: Path, declaration: Declaration) -> None:
        self._path = path
        self.landed: dict[str, int] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        record = read_manifest(path, landing) if path.exists() else ManifestRecord({}, [])
        if record.declaration and record.declaration != dict(declaration):
            raise ManifestMismatch(
                f"{path} belongs to a run with other settings ({record.declaration}); "
                "give the same settings to continue it, or another manifest and landing folder"
            )
        self._rewrite(declaration, record.files)
        for file in record.files:
            self.landed[file.folder] = self.landed.get(file.folder, 0) + 1

    def announce(
        self,
        folder: str,
        file: str,
        rows: int,
        events: Sequence[tuple[tuple[int, ...], str]] = (),
        hours: Mapping[str, int] | None = None,
    ) -> None:
        """Record, durably, that a file is about to land."""
        announced = Announced(folder, file, rows, tuple(events), dict(hours or {}))
        self._append(msgspec.json.encode(announced))

    def _rewrite(self, declaration: Declaration, files: Sequence[Announced]) -> None:
        """Start the manifest, or remove the half-written line of a killed run."""
        lines = [msgspec.json.encode({"declaration": dict(declaration)})]
        lines += [msgspec.json.encode(file) for file in files]
        write_file(str(self._path), b"".join(line + b"\n" for line in lines))

    def _append(self, line: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
