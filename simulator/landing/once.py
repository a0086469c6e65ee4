"""Files that land once, however often their landing is begun again."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rivermark.lake.filesystem import replacing
from rivermark.testing.landing import land
from simulator.landing.folder import files_in_landing_order


@dataclass(frozen=True, slots=True)
class LandedOnce:
    """Number of files and rows of theirs in a folder now, and how many of the files are new."""

    files: int
    rows: int
    new_files: int


def land_parts_once(
    folder: Path, stem: str, parts: Iterable[Iterable[str]], ending: str = ".json"
) -> LandedOnce:
    """Land each part as `<stem>-<number><ending>` unless it is landed already.

    Assumes that the parts are the same each time. Their modification times rise in the order of the
    parts, behind those of all files in the folder, so a landing that was killed is completed in the
    right order, except that files which others landed meanwhile come in between.
    """
    folder.mkdir(parents=True, exist_ok=True)
    landed = files_in_landing_order(folder)
    last_ms = landed[-1].stat().st_mtime_ns // 1_000_000 if landed else -1
    files = rows = new = 0
    for number, part in enumerate(parts):
        lines = list(part)
        path = folder / f"{stem}-{number:04d}{ending}"
        if not path.exists():
            last_ms = land(path, lines, after_ms=last_ms).modified_ms
            new += 1
        files += 1
        rows += len(lines)
    return LandedOnce(files, rows, new)


def copy_once(file: Path, folder: Path) -> bool:
    """Land a copy of a file under its own name unless one is there already; returns whether it did.

    The copy appears whole and with the present as its modification time.
    """
    target = folder / file.name
    if target.exists():
        return False
    with replacing(target) as draft:
        shutil.copyfile(file, draft)
    return True
