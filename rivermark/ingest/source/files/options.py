"""Options by which files of a landing folder are found, and of how they are spelled."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from rivermark.model.bounds import check_not_negative
from rivermark.model.errors import DeclarationError

FileFormat = Literal["json", "csv", "text", "parquet", "avro"]


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The options of a `FileSource`, which documents them."""

    folder: str
    pattern: str = "*"
    format: FileFormat | None = "json"
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    encoding: str = "UTF-8"
    settle: timedelta = timedelta(seconds=1)
    unterminated_settle: timedelta = timedelta(seconds=20)
    max_files: int = 200
    max_bytes: int | None = None
    archive: str | None = None
    producers: str | None = None

    def __post_init__(self) -> None:
        for what, folder in (("landing", self.folder), ("archive", self.archive)):
            if folder is not None and not is_below(folder):
                raise DeclarationError(
                    f"{what} folder {folder!r} must be a relative path without '..'"
                )
        if self.archive is not None and f"{self.archive}/".startswith(f"{self.folder}/"):
            raise DeclarationError(
                f"archive folder {self.archive!r} is inside the landing folder, so its files "
                "would be read again; choose another one"
            )
        if len(self.delimiter) != 1:
            raise DeclarationError(f"delimiter {self.delimiter!r} must be exactly one character")
        if self.delimiter in '"\r\n':
            raise DeclarationError(
                f"delimiter {self.delimiter!r} ends a text or a line; write ',', ';' or '\\t'"
            )
        if not plain_lines(self.encoding):
            raise DeclarationError(
                f"encoding {self.encoding!r} is not known, or its lines do not end with the "
                "byte 10; write one such as utf-8"
            )
        if not self.pattern:
            raise DeclarationError("pattern '': write one such as '*.json'")
        if self.pattern.startswith(".") or "\\" in self.pattern:
            raise DeclarationError(
                f"pattern {self.pattern!r} is no regular expression: `*` is any text; write one "
                "such as '*.json'"
            )
        check_not_negative(
            f"folder {self.folder!r}",
            settle=self.settle,
            unterminated_settle=self.unterminated_settle,
        )
        if self.producers is not None:
            self._check_producers(self.producers)
        if self.max_files < 1 or (self.max_bytes is not None and self.max_bytes < 1):
            raise DeclarationError(
                f"source '{self.folder}': `max_files` and `max_bytes` must be at least 1"
            )

    def _check_producers(self, pattern: str) -> None:
        """Refuse what is no regular expression, or names no one group."""
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise DeclarationError(f"producers {pattern!r}: {error}") from error
        if groups != 1:
            raise DeclarationError(
                f"producers {pattern!r} needs one group, which is the producer's name, as in "
                'r"^([^/]+)/" for one producer per folder'
            )


def is_below(folder: str) -> bool:
    """Returns True if a path is relative and leads nowhere but below its root."""
    parts = folder.split("/")
    return not folder.startswith("/") and ".." not in parts and "" not in parts


def plain_lines(encoding: str) -> bool:
    """True if an encoding is known and writes a line's end as one byte, as the readers expect."""
    try:
        return "\n".encode(encoding) == b"\n"
    except (LookupError, UnicodeError):
        return False


def is_utf8(encoding: str) -> bool:
    """Returns True if the encoding is UTF-8, under any of its names."""
    return codecs.lookup(encoding).name == "utf-8"
