"""Reading a landing folder: what lies there, its lines and rows, and where it goes afterwards."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from pyarrow import fs
from pyspark.sql import SparkSession

from rivermark.ingest.source.files.corrupt_files import damaged_files
from rivermark.ingest.source.files.file_probe import FileProbe, format_of
from rivermark.ingest.source.files.listing import LandedFile, LandedFiles
from rivermark.ingest.source.files.options import FileOptions
from rivermark.ingest.source.files.pieces import pieces_of
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import (
    PIECE_BYTES,
    Backlog,
    Diagnose,
    Discovery,
    Limit,
    Piece,
    PlannedSplit,
    PlanRows,
    SourceReader,
    Split,
    Waiting,
    weight_of,
)
from rivermark.model.time import EPOCH


class FileReader(SourceReader):
    """Reads the files of one landing folder; a split is a file."""

    def __init__(self, landing_root: str, options: FileOptions) -> None:
        self._options = options
        self._landed = LandedFiles(landing_root, options)
        self._seen = SeenFiles()
        self._archive = (
            Archive(landing_root, options.archive) if options.archive is not None else None
        )
        self.limit = Limit(options.max_files, options.max_bytes)
        self.settle_time = max(options.settle, options.unterminated_settle)

    def expect(self, columns: Collection[str]) -> None:
        """Take a CSV header that names none of these columns for a record."""
        self._landed.wanted = frozenset(name.lower() for name in columns)

    def restore(self, plan: PlanRows) -> None:
        """Continue behind the files that were planned."""
        # By name below the folder: a landing root that is mounted elsewhere brings nothing new.
        for name, size in plan("name", "size"):
            self._seen.add(name, size)

    def planned(self, splits: Sequence[Split]) -> None:
        """Remember the files, by name and size."""
        for split in splits:
            self._seen.add(split.name, split.size)
            self._landed.forget(split.name)

    def discover(self, *, full: bool = True) -> Discovery:
        """List the folder and probe the files that are not planned."""
        discovery = Discovery()
        try:
            listing = self._landed.all() if full else self._landed.unknown(self._seen)
        except OSError as error:
            # A folder that cannot be listed now may be at the next poll.
            folder, reason = self._landed.folder, f"cannot be read yet: {error}"
            discovery.waiting.append(Waiting(folder, folder, reason, 0, EPOCH))
            return discovery
        for file in listing.files:
            size = self._seen.size_of(file.name)
            if size is None:
                probed = self._probed(file)
                if isinstance(probed, Waiting):
                    discovery.waiting.append(probed)
                else:
                    discovery.ready.append(probed)
            elif size != file.size:
                reason = f"had {size} bytes when it was read and has {file.size} now"
                discovery.changed.append(self._waiting(file, reason))
        discovery.ready.sort(key=lambda split: (split.modified_at, split.path))
        discovery.waiting += [
            Waiting(path, path, f"cannot be read yet: {reason}", 0, EPOCH)
            for path, reason in listing.closed
        ]
        discovery.ignored = [
            self._waiting(file, f"fits no pattern of {self._options.pattern}")
            for file in listing.unmatched
        ]
        return discovery

    def _probed(self, file: LandedFile) -> Split | Waiting:
        probe = self._landed.probe(file)
        if probe.status == "waiting":
            return self._waiting(file, probe.reason or "not ready", settling=probe.settling)
        return self._split(file, probe)

    def _waiting(self, file: LandedFile, reason: str, *, settling: bool = False) -> Waiting:
        path = self._landed.path(file.name)
        return Waiting(file.name, path, reason, file.size, file.modified_at, settling)

    def _split(self, file: LandedFile, probe: FileProbe) -> Split:
        return Split(
            name=file.name,
            path=self._landed.path(file.name),
            size=file.size,
            modified_at=file.modified_at,
            format=probe.format,
            columns=json.dumps(probe.columns) if probe.columns is not None else None,
            head=probe.head,
            status=probe.status,
            reason=probe.reason,
            digest=probe.digest,
        )

    def current(self, name: str) -> Split | Waiting | None:
        """The file as it lies in the folder now."""
        file = self._landed.named(name)
        return None if file is None else self._probed(file)

    def backlog(self) -> Backlog:
        """Measure the files that are not planned, ready or not."""
        files = self._landed.unknown(self._seen).files
        weights = [weight_of(f.name, format_of(f.name, self._options), f.size) for f in files]
        return Backlog(len(files), sum(weights), min((f.modified_at for f in files), default=None))

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """Cut large files into pieces."""
        return [piece for split in splits for piece in self._pieces(split, most_bytes)]

    def _pieces(self, split: PlannedSplit, most_bytes: int) -> list[Piece]:
        lying = replace(split, path=self._landed.path(split.name))
        return pieces_of(lying, self._options, self._landed.wanted, most_bytes)

    def diagnose(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], parse: Diagnose
    ) -> Mapping[str, str]:
        """Read each file alone, and name those that are damaged or gone."""
        lying = self._where_they_lie(splits)
        return damaged_files(lying, lambda file: self._pieces(file, PIECE_BYTES), parse)

    def committed(self, splits: Sequence[PlannedSplit]) -> None:
        """Archive the files, where that is declared."""
        if self._archive is not None:
            for split in self._where_they_lie(splits):
                self._archive.move(split)

    def _where_they_lie(self, splits: Sequence[PlannedSplit]) -> list[PlannedSplit]:
        """The splits with their paths in this folder, which may have moved since the plan."""
        return [replace(split, path=self._landed.path(split.name)) for split in splits]


class Archive:
    """Moves files of a landing folder to a folder beside it, under the same names.

    A move that was cut short is repeated with the batch. A file that is not as it was read, and
    one that was moved already, are left alone.
    """

    def __init__(self, landing_root: str, folder: str) -> None:
        self._fs, self._folder = filesystem(f"{landing_root.rstrip('/')}/{folder}")

    def move(self, split: PlannedSplit) -> None:
        """Move the file of a split; another one of that name in the archive is kept."""
        _, source = filesystem(split.path)
        target = f"{self._folder}/{split.name}"
        landed, archived = self._fs.get_file_info([source, target])
        if landed.type != fs.FileType.File or landed.size != split.size:
            return
        if landed.mtime_ns // 1000 != round(split.modified_at.timestamp() * 1e6):
            return
        if archived.type != fs.FileType.NotFound:
            target = f"{target}~{split.batch}"
        self._fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
        self._fs.move(source, target)


RECENT: Final = 20_000
"""So many names are kept as they are before their digests are sorted in among the others."""

ROW: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("size", "<i8")])


class SeenFiles:
    """Names and sizes of millions of files: a name is kept as a digest of 128 bits.

    A file a second is 31 million a year, and a process serves several ingests: a million names of
    44 characters take 31 to 44 MB, where a dict takes 184 MB. Two names of one digest would hide
    the second file; among 100 million names the odds are one in 10^22.
    """

    def __init__(self, files: Iterable[tuple[str, int]] = ()) -> None:
        self._recent: dict[str, int] = {}
        self._sorted: npt.NDArray[Any] = np.empty(0, ROW)
        for name, size in files:
            self.add(name, size)

    def __len__(self) -> int:
        """Number of files that were planned."""
        return len(self._sorted) + len(self._recent)

    def __contains__(self, name: object) -> bool:
        """Returns True if a file of that name was planned."""
        return isinstance(name, str) and self.size_of(name) is not None

    def add(self, name: str, size: int) -> None:
        """Remember a file."""
        self._recent[name] = size
        if len(self._recent) >= RECENT:
            rows = [(*digest(name), size) for name, size in self._recent.items()]
            # The newest first: of a file that was read again the size then counts. Stable sorting
            # takes what is sorted already as it is; sorting the rows themselves would compare them
            # one by one.
            joined = np.concatenate([np.array(rows, ROW), self._sorted])
            self._sorted = joined[np.argsort(joined["high"], kind="stable")]
            self._recent = {}

    def size_of(self, name: str) -> int | None:
        """The size with which a file was planned, or None for one that was not."""
        recent = self._recent.get(name)
        if recent is not None or not len(self._sorted):
            return recent
        high, low = digest(name)
        place = int(np.searchsorted(self._sorted["high"], np.uint64(high)))
        while place < len(self._sorted) and int(self._sorted["high"][place]) == high:
            if int(self._sorted["low"][place]) == low:
                return int(self._sorted["size"][place])
            place += 1
        return None


def digest(name: str) -> tuple[int, int]:
    """A name in 128 bits; names from a disk may hold bytes that are no text."""
    digested = blake2b(name.encode(errors="surrogateescape"), digest_size=16).digest()
    return int.from_bytes(digested[:8], "little"), int.from_bytes(digested[8:], "little")
