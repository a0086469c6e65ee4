"""A landing folder as a source: files are read once each, in the order in which they landed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rivermark.ingest.source.files.options import FileOptions
from rivermark.model.declared import declared
from rivermark.model.source import SourceReader
from rivermark.model.source_abilities import LandingSource, SplitAsRead


@declared("source", lambda values: values.get("folder"))
@dataclass(frozen=True, kw_only=True)
class FileSource(FileOptions, LandingSource):
    """Files below `<landing root>/<folder>` whose names fit `pattern`.

    Formats: `json` is one object a line; `csv` is one record a line, with a header line unless
    `columns` names the columns of a file without one; `text` is one record a line, in a column
    `text`; `parquet`; `avro`. Text files may be gzipped (.gz). A pattern may list alternatives by
    commas: "*.json,*.json.gz". Where a folder holds several formats set `format=None`: the file's
    ending decides (.parquet, .avro, .csv, .txt as CSV, .json, .jsonl, .ndjson, .log as text).

    A file is taken when it has not changed for `settle`; a text file whose last line has no end
    waits for `unterminated_settle` instead, because it may still be written. Names that begin with
    '.' or '_', or end with '._COPYING_', are never taken: write under such a name, then rename.
    Files are read in the order of (modification time, path). A planned batch ends with `max_files`
    files, or when their bytes pass `max_bytes` (Parquet, Avro and gzip counted eightfold; by
    default `RIVERMARK_BATCH_BYTES` for each core). How files are grouped changes no result.

    `archive` names a folder below the landing root. A file that was read is moved there once its
    rows are in the tables; files that were quarantined as a whole stay where they are.

    `producers` is a regular expression that is searched in a file's path below the folder: its one
    group is the producer of the file's rows, as in r"^([^/]+)/" for a folder each. Files in which
    it is not found share one producer. See `PerProducer`.

    Raises:
        DeclarationError: for folders outside the landing root, limits below 1, and `producers`
            without exactly one group.
    """

    kind: ClassVar[str] = "file"
    unit: ClassVar[str] = "file"

    @property
    def name(self) -> str:
        """The folder."""
        return self.folder

    @property
    def asset(self) -> tuple[str, ...]:
        """The folder, below `landing`."""
        return ("landing", *self.folder.split("/"))

    @property
    def description(self) -> str:
        """The files, and the folder in which they land."""
        return f"Files `{self.pattern}` that land in `{self.folder}`."

    @property
    def tells_producers(self) -> bool:
        """True where `producers` was declared."""
        return self.producers is not None

    def producer(self, split: str) -> str:
        """The match of `producers` in the file's path; the folder where there is none."""
        match = re.search(self.producers, split) if self.producers is not None else None
        return (match and match[1]) or self.folder

    def open(self, landing_root: str) -> SourceReader:
        """Open the folder, which need not exist yet."""
        # The reader loads Arrow and Spark, which a declaration does not need.
        from rivermark.ingest.source.files.reader import FileReader

        return FileReader(landing_root, self)

    def changed(self, landing_root: str, read: Iterable[SplitAsRead]) -> dict[str, str]:
        """The files whose content is another one than was read."""
        from rivermark.ingest.source.files.listing import changed_files

        return changed_files(landing_root, self, read)
