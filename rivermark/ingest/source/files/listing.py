"""The landing folder of an ingest: the files that lie in it, and whether each is ready."""

from __future__ import annotations

import io
import os
import stat
import time
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Final
from zlib import crc32

from pyarrow import fs

from rivermark.ingest.source.files.file_probe import (
    HEAD_BYTES,
    FileProbe,
    is_packed,
    one_line,
    probe_file,
)
from rivermark.ingest.source.files.longest_line import LongestLine
from rivermark.ingest.source.files.options import FileOptions
from rivermark.ingest.source.files.stored_file import StoreFault, open_stored
from rivermark.ingest.source.files.walk import Walk, hidden
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.model.source_abilities import SplitAsRead
from rivermark.model.time import micros_of, moment_of_micros

FIRST, LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Modification times beyond are taken for these, a day inside what every zone can show."""


@dataclass(frozen=True)
class LandedFile:
    """A file in the landing folder: its path within the store, and its name below the folder.

    A name that is no UTF-8 is escaped in `name`, and its file cannot be opened. `ctime_ns` is when
    a disk last changed anything of it, 0 in other stores: unlike `mtime_ns` no program can set it.
    """

    path: str
    name: str
    size: int
    mtime_ns: int
    ctime_ns: int = 0

    @property
    def is_text(self) -> bool:
        """True if the path is UTF-8, as every reader needs it."""
        return printable(self.path) == self.path

    @property
    def modified_at(self) -> datetime:
        """The time of its last change in microseconds, as the plan keeps it."""
        micros = self.mtime_ns // 1000
        first, last = map(micros_of, (FIRST, LAST))
        return moment_of_micros(min(max(micros, first), last))


@dataclass
class Listing:
    """The content of a folder: the source's files, those that fit no pattern, what stays closed.

    `closed` has the path and the reason of each file or folder that could not be looked at.
    """

    files: list[LandedFile] = field(default_factory=list)
    unmatched: list[LandedFile] = field(default_factory=list)
    closed: list[tuple[str, str]] = field(default_factory=list)


class LandedFiles:
    """Lists `<landing root>/<folder>`, which need not exist yet; writes nothing."""

    def __init__(self, landing_root: str, options: FileOptions) -> None:
        self._options = options
        self._patterns = [p.strip() for p in options.pattern.split(",")]
        self._landing = landing_root
        self._root = root = f"{landing_root.rstrip('/')}/{options.folder}"
        self._fs, self.folder = filesystem(root)
        self._prefix = self.folder if is_local(root) else root
        self._watched: dict[str, tuple[int, int, float]] = {}
        self._held: dict[str, tuple[LandedFile, FileProbe]] = {}
        """Files that were read to their end and wait for the batches before them."""
        self.wanted: Collection[str] | None = None
        """The column names that the contract knows, in lower case; None where any may be."""

    def unknown(self, known: Container[str]) -> Listing:
        """The files for this source whose name is not in `known`.

        On a disk only those are looked at: a thousand known names cost less than a millisecond.
        """
        if is_local(self._root):
            return self._walk(known)
        listing = self.all()
        listing.files = [file for file in listing.files if file.name not in known]
        return listing

    def all(self) -> Listing:
        """All that lies there; raises OSError while a store cannot be listed."""
        if is_local(self._root):
            return self._walk()
        listing = Listing()
        selector = fs.FileSelector(self.folder, recursive=True, allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            below = info.path[len(self.folder) + 1 :]
            if info.type == fs.FileType.File and not hidden(below):
                file = LandedFile(info.path, below, info.size, info.mtime_ns)
                (listing.files if self._fits(below) else listing.unmatched).append(file)
        return listing

    def _walk(self, known: Container[str] | None = None) -> Listing:
        listing = Listing()
        landing = filesystem(self._landing)[1]
        walk = Walk(self.folder, landing, lambda below: not hidden(below) and self._fits(below))
        for path in walk.paths():
            name = printable(path[len(self.folder) + 1 :])
            if known is not None and (name in known or not self._fits(name)):
                continue
            if printable(path) != path and os.path.lexists(printable(path)):
                reason = "its name is no UTF-8, and with escapes that of another file"
                listing.closed.append((printable(path), reason))
                continue
            try:
                status = os.stat(path)  # noqa: PTH116 - paths may hold what pathlib would decode
            except FileNotFoundError:
                continue
            except OSError as error:
                listing.closed.append((printable(path), one_line(str(error))))
                continue
            if stat.S_ISREG(status.st_mode):
                times = status.st_mtime_ns, status.st_ctime_ns
                file = LandedFile(path, name, status.st_size, *times)
                (listing.files if self._fits(name) else listing.unmatched).append(file)
        listing.closed += [(printable(path), one_line(str(error))) for path, error in walk.closed]
        return listing

    def named(self, name: str) -> LandedFile | None:
        """The file of a name below the folder; None where it is gone."""
        # By the listing, so that no link leads where it does not.
        return next((file for file in self.all().files if file.name == name), None)

    def _fits(self, name: str) -> bool:
        last = name.rsplit("/", 1)[-1]
        return any(fnmatchcase(last, pattern) for pattern in self._patterns)

    def path(self, name: str) -> str:
        """The path by which Spark opens the file of a name: whole, with its scheme elsewhere."""
        return printable(f"{self._prefix}/{name}")

    def probe(self, file: LandedFile) -> FileProbe:
        """Returns True if the file is ready, rejected with a reason, or has to wait."""
        stamp = file.size, file.mtime_ns
        before = self._watched.get(file.name)
        if before is None or before[:2] != stamp:
            self._watched[file.name] = (*stamp, time.monotonic())
        watched = time.monotonic() - self._watched[file.name][2]
        # A copied file keeps an old modification time; a clock that went back makes a future one.
        quiet = max(time.time() - file.mtime_ns / 1e9, watched)
        if quiet < self._options.settle.total_seconds():
            return FileProbe("waiting", reason="changed a moment ago", settling=True)
        if not file.is_text:
            return FileProbe("rejected", reason="file_name_not_utf8")
        held = self._held.get(file.name)
        if held is not None and held[0] == file:
            return held[1]
        probe = probe_file(self._fs, file.path, file.size, self._options, self.wanted)
        if probe.doubtful and quiet < self._options.unterminated_settle.total_seconds():
            reason = f"looks unfinished: {probe.reason or 'no line end'}"
            return FileProbe("waiting", reason=reason, settling=True)
        # Last, because a file that still waits is probed at every poll.
        if probe.status == "ready" and self._is_scanned(file):
            probe = scanned(probe, self._fs, file.path)
        if probe.status != "waiting":
            self._held[file.name] = file, probe
        return probe

    def _is_scanned(self, file: LandedFile) -> bool:
        """True if reading the whole file costs little: on a disk admission finds it in memory."""
        return is_local(self._root) or file.size <= HEAD_BYTES

    def digest(self, file: LandedFile) -> str:
        """The digest of the file's content as it is now; raises OSError where it cannot be read."""
        return digest_of(self._fs, file.path)

    def forget(self, name: str) -> None:
        """Stop watching a file."""
        self._watched.pop(name, None)
        self._held.pop(name, None)


def printable(path: str) -> str:
    """A path as text: each byte that is no UTF-8 becomes an escape."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


LONGEST_LINE: Final = 32 << 20
"""Bytes of a line beyond which its file is quarantined: text readers hold a line several times
over, and one of gigabytes ends the engine."""
TEXT: Final = ("json", "csv", "text")


def scanned(probe: FileProbe, files: fs.FileSystem, path: str) -> FileProbe:
    """The probe with the file's digest; a text with an overlong line is rejected."""
    try:
        with open_stored(files, path) as file:
            digest, longest = _scan(file, lines=probe.format in TEXT and not is_packed(path))
    except StoreFault as fault:
        return FileProbe("waiting", probe.format, f"cannot be read yet: {one_line(str(fault))}")
    if max(longest, probe.longest_line) > LONGEST_LINE:
        reason = f"file_line_too_long: a line of more than {LONGEST_LINE >> 20} MiB"
        return FileProbe("rejected", probe.format, reason, digest=digest)
    return replace(probe, digest=digest)


def digest_of(files: fs.FileSystem, path: str) -> str:
    """The digest of a file's bytes; raises OSError where they cannot be read."""
    try:
        with open_stored(files, path) as file:
            return _scan(file, lines=False)[0]
    except StoreFault as fault:
        raise OSError(str(fault)) from fault


def _scan(file: io.BufferedIOBase, lines: bool) -> tuple[str, int]:
    """The digest of what can be read, and the bytes of the longest line."""
    digest, longest = 0, LongestLine()
    while piece := file.read(HEAD_BYTES):
        digest = crc32(piece, digest)
        if lines:
            longest.add(piece)
    return f"crc32:{digest:08x}", longest.length


COARSE: Final = timedelta(seconds=1)
"""Stores and copies round modification times; without a digest less than this says nothing."""


def changed_files(
    landing_root: str, options: FileOptions, read: Iterable[SplitAsRead]
) -> dict[str, str]:
    """The names of files that were read and changed since, and how that shows, in words.

    A file whose size is the same is compared by its content where anything touched it since: its
    modification time is another one, or on a disk its inode was changed after it was read. Files
    that were read before digests were kept are known by their modification time alone.
    """
    landed = LandedFiles(landing_root, options)
    try:
        present = {file.name: file for file in landed.all().files}
    except OSError:
        return {}
    changed: dict[str, str] = {}
    for split in read:
        file = present.get(split.name)
        what = None if file is None else _change(landed, file, split)
        if what is not None:
            changed[split.name] = what
    return dict(sorted(changed.items()))


def _change(landed: LandedFiles, file: LandedFile, read: SplitAsRead) -> str | None:
    """The difference between the file and what was read, in words."""
    if file.size != read.size:
        return f"changed since, from {read.size} to {file.size} bytes"
    written = file.modified_at
    if read.digest is None:
        if abs(written - read.modified_at) <= COARSE:
            return None
        return f"written again since, {written.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    touched = moment_of_micros(file.ctime_ns // 1000)
    if written == read.modified_at and (read.at is None or touched <= read.at):
        return None
    try:
        same = landed.digest(file) == read.digest
    except OSError:
        return None
    return None if same else "changed since, its size is the same"
