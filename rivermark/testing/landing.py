"""Writes one landing file so that a reader sees all of it or nothing."""

import gzip
import io
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rivermark.lake.filesystem import replacing

TEXT_ENDINGS = (".json", ".jsonl", ".csv", ".txt")


@dataclass(frozen=True, slots=True)
class Landed:
    """A file that has landed; `modified_ms` is its modification time, milliseconds since 1970."""

    path: Path
    rows: int
    size: int
    modified_ms: int


def land(path: Path, content: Iterable[str] | pa.Table, *, after_ms: int | None = None) -> Landed:
    """Write a new file under its name in one step; its folder is made where it is missing.

    Text lines (without line ends) for .json, .jsonl, .csv and .txt, an Arrow table for .csv and
    .parquet; a further .gz compresses text. The file is written under a hidden name in the same
    folder, synced, and renamed. Its modification time lies after `after_ms` even where the clock
    did not move, because readers order files by it.

    FileExistsError where the name is taken: a reader never looks at a known name again. ValueError
    where name and content do not fit. Assumes one writer per name.
    """
    if path.exists():
        raise FileExistsError(f"{path} has landed already; land under another name")
    with replacing(path) as draft:
        with draft.open("xb") as file:
            rows = _write(file, path.name, content)
        size = draft.stat().st_size
        modified_ms = max(time.time_ns() // 1_000_000, -1 if after_ms is None else after_ms + 1)
        os.utime(draft, ns=(modified_ms * 1_000_000,) * 2)
    return Landed(path, rows, size, modified_ms)


def _write(file: io.BufferedWriter, name: str, content: Iterable[str] | pa.Table) -> int:
    plain_name = name.removesuffix(".gz")
    if isinstance(content, pa.Table):
        if plain_name.endswith(".parquet") and plain_name == name:
            pyarrow.parquet.write_table(content, file)
        elif plain_name.endswith(".csv"):
            text = io.BytesIO()
            pyarrow.csv.write_csv(content, text)
            file.write(_packed(text.getvalue(), name))
        else:
            raise ValueError(f"{name}: an Arrow table lands as .parquet, .csv or .csv.gz")
        return int(content.num_rows)
    if not plain_name.endswith(TEXT_ENDINGS):
        raise ValueError(f"{name}: lines land as one of {', '.join(TEXT_ENDINGS)}, or with .gz")
    lines = list(content)
    file.write(_packed("".join(f"{line}\n" for line in lines).encode(), name))
    return len(lines)


def _packed(text: bytes, name: str) -> bytes:
    # No time in the gzip header: equal rows make equal files.
    return gzip.compress(text, mtime=0) if name.endswith(".gz") else text
