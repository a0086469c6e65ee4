"""A landing folder: files that somebody drops, each read once, in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rivermark.model.errors import DeclarationError

FileFormat = Literal["json", "csv", "parquet"]


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """Files below `<landing root>/<folder>` whose names fit `pattern`.

    Formats: `json` is one object a line; `csv` is one record a line, with a header line unless
    `columns` names the columns of a file without one; `parquet`. Text files may be gzipped (.gz).
    A pattern may list alternatives by commas: "*.json,*.json.gz". Where a folder holds several
    formats give `format=None`: the file's ending decides (.parquet, .csv, .txt, .json, .jsonl).

    A file is taken when it has not changed for `settle`; a text file whose last line has no end is
    given `unterminated_settle` instead, because somebody may still be writing it. Names that begin
    with '.' or '_' are never taken: write under such a name, then rename. Files are read in the
    order of (modification time, path). An arrival ends with `max_files` files, or when their bytes
    pass `max_bytes` (Parquet and gzip counted eightfold): a backlog becomes batches of seconds. How
    files are grouped changes no verdict.
    """

    folder: str
    pattern: str = "*"
    format: FileFormat | None = "json"
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    encoding: str = "UTF-8"
    settle: timedelta = timedelta(seconds=1)
    unterminated_settle: timedelta = timedelta(seconds=20)
    max_files: int = 200
    max_bytes: int = 8 << 20

    def __post_init__(self) -> None:
        """Refuse folders outside the landing root and limits that would stand still."""
        parts = self.folder.split("/")
        if self.folder.startswith("/") or ".." in parts or "" in parts:
            raise DeclarationError(f"landing folder {self.folder!r}: a relative path, without '..'")
        if len(self.delimiter) != 1:
            raise DeclarationError(f"delimiter {self.delimiter!r}: exactly one character")
        if not plain_lines(self.encoding):
            raise DeclarationError(
                f"encoding {self.encoding!r}: not known, or its lines do not end with the byte 10"
            )
        if self.max_files < 1 or self.max_bytes < 1:
            raise DeclarationError("max_files, max_bytes: at least 1")


def weight_of(path: str, kind: str | None, size: int) -> int:
    """Bytes of a file as text, about: what Parquet and gzip pack takes much more room in memory."""
    return size * (8 if kind == "parquet" or path.lower().endswith(".gz") else 1)


def plain_lines(encoding: str) -> bool:
    """Whether an encoding is known and writes a line's end as one byte, as the readers expect."""
    try:
        return "\n".encode(encoding) == b"\n"
    except LookupError:
        return False
