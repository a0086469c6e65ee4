"""The records of small files, read in the driver instead of by a Spark job. The same, to the byte.

Listing, planning and running a job to read a few hundred kilobytes costs more than parsing them.
What Spark's text source would change or refuse is not read here: `records_of` returns None, and the
files are read by Spark (rivermark.ingest.source.files.spark_reader), which stays the reference.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Sequence
from typing import Final

from rivermark.ingest.source.files.avro import avro_payloads
from rivermark.ingest.source.files.options import FileOptions
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import PlannedSplit

MOST_BYTES: Final = 16 << 20
"""Beyond so many bytes of text (gzip unpacked) the executors read."""
TEXT: Final = (".json", ".jsonl", ".ndjson", ".csv", ".txt", ".log")


def records_of(files: Sequence[PlannedSplit], options: FileOptions) -> list[list[str]] | None:
    """The payloads of each file, empty lines included; None where Spark has to read them.

    That is: Parquet, encodings other than UTF-8, bytes that are not UTF-8 (Spark replaces them),
    more than MOST_BYTES, other endings, files that cannot be read or opened (Spark says why).
    """
    utf8 = options.encoding.upper().replace("-", "") == "UTF8"
    if any(not (f.format == "avro" or (utf8 and plain(f))) for f in files):
        return None
    records, left = [], MOST_BYTES
    for file in files:
        if file.format == "avro":
            left -= file.weight
            if left < 0:
                return None
            records.append([*avro_payloads(file.path)])
            continue
        text = text_of(file.path, left)
        if text is None:
            return None
        left -= len(text)
        # The three line ends of Hadoop's line reader, and no others, as bytes are split here.
        records.append([line.decode() for line in text.splitlines()])
    return records


def plain(file: PlannedSplit) -> bool:
    """Whether the file is text or gzip to Hadoop too, and has a name that it can open."""
    ending = file.name.removesuffix(".gz").lower().endswith(TEXT)
    return ending and file.format != "parquet" and ":" not in file.name


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
