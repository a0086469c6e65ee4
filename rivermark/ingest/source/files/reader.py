"""Reading a landing folder: what lies there, its lines and rows, and where it goes afterwards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pyarrow import fs
from pyspark.sql import SparkSession

from rivermark.ingest.source.files.archive import Archive
from rivermark.ingest.source.files.corrupt_files import damaged_files
from rivermark.ingest.source.files.driver_reader import records_of
from rivermark.ingest.source.files.file_probe import FileProbe, format_of
from rivermark.ingest.source.files.listing import LandedFiles
from rivermark.ingest.source.files.options import FileOptions
from rivermark.ingest.source.files.seen_files import SeenFiles
from rivermark.ingest.source.files.spark_reader import read_files
from rivermark.ingest.source.payload import driver_records
from rivermark.ingest.spark_internals import hadoop_uri
from rivermark.model.source import (
    Backlog,
    Diagnose,
    Discovery,
    Limit,
    PlannedSplit,
    PlanRows,
    Records,
    SourceReader,
    Split,
    Waiting,
    weight_of,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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
            files = self._landed.all() if full else self._landed.unknown(self._seen)
        except OSError as error:
            # A folder that cannot be listed now may be at the next poll.
            folder, reason = self._landed.folder, f"cannot be read yet: {error}"
            discovery.waiting.append(Waiting(folder, folder, reason, 0, EPOCH))
            return discovery
        for info in files:
            name = self._landed.name(info)
            size = self._seen.size_of(name)
            if size is None:
                self._sort_in(discovery, info, name)
            elif size != info.size:
                reason = f"had {size} bytes when it was read and has {info.size} now"
                discovery.changed.append(
                    Waiting(name, info.path, reason, info.size, modified_at(info))
                )
        discovery.ready.sort(key=lambda split: (split.modified_at, split.path))
        return discovery

    def _sort_in(self, discovery: Discovery, info: fs.FileInfo, name: str) -> None:
        probe = self._landed.probe(info)
        if probe.status == "waiting":
            reason = probe.reason or "not ready"
            discovery.waiting.append(
                Waiting(name, info.path, reason, info.size, modified_at(info), probe.settling)
            )
        else:
            discovery.ready.append(self._split(info, name, probe))

    def _split(self, info: fs.FileInfo, name: str, probe: FileProbe) -> Split:
        return Split(
            name=name,
            path=self._landed.path(info),
            size=info.size,
            modified_at=modified_at(info),
            format=probe.format,
            columns=json.dumps(probe.columns) if probe.columns is not None else None,
            head=probe.head,
            status=probe.status,
            reason=probe.reason,
        )

    def backlog(self) -> Backlog:
        """Measure the files that are not planned, ready or not."""
        files = self._landed.unknown(self._seen)
        weights = [weight_of(f.path, format_of(f.path, self._options), f.size) for f in files]
        return Backlog(len(files), sum(weights), min(map(modified_at, files), default=None))

    def read(self, spark: SparkSession, splits: Sequence[PlannedSplit], *, small: bool) -> Records:
        """Read small text and Avro files in the driver, all others on Spark."""
        payloads = records_of(splits, self._options) if small else None
        if payloads is None:
            return Records(
                read_files(spark, splits, self._options),
                [hadoop_uri(spark, s.path) for s in splits],
            )
        return driver_records(payloads)

    def diagnose(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], parse: Diagnose
    ) -> Mapping[str, str]:
        """Read each file alone, and name those that are damaged or gone."""
        return damaged_files(spark, splits, self._options, parse)

    def committed(self, splits: Sequence[PlannedSplit]) -> None:
        """Archive the files, where that is declared."""
        if self._archive is not None:
            for split in splits:
                self._archive.move(split)


def modified_at(info: fs.FileInfo) -> datetime:
    """When a file was changed, in microseconds as the plan keeps it: grouping keeps the order."""
    return EPOCH + timedelta(microseconds=info.mtime_ns // 1000)
