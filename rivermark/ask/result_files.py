"""The rows of a result written as they come: CSV, JSON lines, Parquet. None waits for all rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from rivermark.lake.filesystem import replacing
from rivermark.model.errors import WrongUse

if TYPE_CHECKING:
    AsJson = Callable[[object], Any]

PLAIN: Final = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_date, pa.types.is_timestamp),
)
"""Types that CSV has as they are; of others it has the text that JSON would have."""


def write_rows(path: Path, batches: pa.RecordBatchReader, as_json: AsJson) -> int:
    """Write the rows into a file, which is there when all of them are; returns their number.

    The ending of its name says how: .csv, .jsonl or .parquet. Raises WrongUse for another one,
    and for a place where no file can be written.
    """
    writers: dict[str, Callable[[BinaryIO, pa.RecordBatchReader, AsJson], int]] = {
        ".csv": csv_rows,
        ".jsonl": _json_lines,
        ".parquet": _parquet,
    }
    if path.suffix not in writers:
        raise WrongUse(
            f"{path}: a result can be written as {', '.join(writers)}; choose one of these endings"
        )
    check_place(path)
    with replacing(path) as draft, draft.open("wb") as file:
        return writers[path.suffix](file, batches, as_json)


def check_place(file: Path) -> None:
    """Refuse a file that cannot be written where it is said to be, before anything is read."""
    place = next(each for each in file.absolute().parents if each.exists())
    if file.is_dir() or not place.is_dir() or not os.access(place, os.W_OK):
        what = file if file.is_dir() else place
        raise WrongUse(f"{file} cannot be written: {what} cannot hold it; name another file")


def csv_rows(file: BinaryIO, batches: pa.RecordBatchReader, as_json: AsJson) -> int:
    """Write the rows as CSV with a header; instants are UTC."""
    plain = [any(is_kind(field.type) for is_kind in PLAIN) for field in batches.schema]
    schema = pa.schema(
        field if as_is else pa.field(field.name, pa.string())
        for field, as_is in zip(batches.schema, plain, strict=True)
    )
    rows = 0
    with pyarrow.csv.CSVWriter(file, schema) as writer:
        for batch in batches:
            columns = [
                column if as_is else _texts(column, as_json)
                for column, as_is in zip(batch.columns, plain, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            rows += batch.num_rows
    return rows


def _texts(column: pa.Array, as_json: AsJson) -> pa.Array:
    values = [None if each is None else as_json(each) for each in column.to_pylist()]
    texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
    return pa.array(texts, pa.string())


def _json_lines(file: BinaryIO, batches: pa.RecordBatchReader, as_json: AsJson) -> int:
    rows = 0
    for batch in batches:
        for row in batch.to_pylist():
            file.write(json.dumps(as_json(row), allow_nan=False).encode() + b"\n")
        rows += batch.num_rows
    return rows


def _parquet(file: BinaryIO, batches: pa.RecordBatchReader, _as_json: AsJson) -> int:
    rows = 0
    with pq.ParquetWriter(file, batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows
