"""The lines of small text files, read here instead of by a Spark job. The same lines, to the byte.

Listing, planning and running a job to read a few hundred kilobytes costs more than parsing them.
What Spark's text source would change or refuse is not read here: `lines_of` gives None, and the
files take the way through Spark (rivermark.ingest.source.spark_reader), which stays the reference.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Sequence
from typing import Final

from rivermark.ingest.source.spark_reader import Arrived
from rivermark.lake.filesystem import filesystem
from rivermark.model.file_source import FileSource

MOST_BYTES: Final = 16 << 20
"""Beyond so many bytes of text (gzip unpacked) the executors read."""
TEXT: Final = (".json", ".jsonl", ".ndjson", ".csv", ".txt")


def lines_of(files: Sequence[Arrived], source: FileSource) -> list[list[str]] | None:
    """The lines of each file, empty ones included; None where Spark has to read them.

    That is: Parquet, encodings other than UTF-8, bytes that are not UTF-8 (Spark replaces them),
    more than MOST_BYTES, other endings, files that cannot be read or opened (Spark tells why).
    """
    if source.encoding.upper().replace("-", "") != "UTF8":
        return None
    if any(f.format == "parquet" or not plain(f.name) for f in files):
        return None
    found, left = [], MOST_BYTES
    for file in files:
        text = text_of(file.path, left)
        if text is None:
            return None
        left -= len(text)
        # The three line ends of Hadoop's line reader, and no others, as bytes are split here.
        found.append([line.decode() for line in text.splitlines()])
    return found


def plain(name: str) -> bool:
    """Whether the file is text or gzip to Hadoop too, and has a name that it can open."""
    return name.removesuffix(".gz").lower().endswith(TEXT) and ":" not in name


def text_of(path: str, most: int) -> bytes | None:
    """A file's text without its byte order mark, if it is UTF-8 and not longer than `most`."""
    store, inside = filesystem(path)
    try:
        with store.open_input_stream(inside, compression=None) as file:
            if path.endswith(".gz"):
                with gzip.GzipFile(fileobj=file) as packed:
                    text = packed.read(most + 1)
            else:
                text = file.read(most + 1)
        if len(text) > most:
            return None
        text = bytes(text).removeprefix(codecs.BOM_UTF8)
        text.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None
    return text
