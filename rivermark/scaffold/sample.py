"""A sample of data, read as admission would read it: the texts of each column, and its source."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as t

from rivermark.lake.delta import dataset_of, delta_table, read_batches
from rivermark.lake.json_columns import json_objects
from rivermark.model.errors import WrongUse

MOST_ROWS: Final = 10_000
TEXT_FORMATS: Final = {
    **dict.fromkeys((".csv", ".txt", ".tsv"), "csv"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
}
DELIMITERS: Final = ",;\t|"
KNOWN: Final = "CSV (.csv, .tsv, .txt), JSON lines (.jsonl, .ndjson, .json), Parquet, a Delta table"


class Written(str):
    """The text of a value that was no string in its source: a number, a truth, an object."""


@dataclass(frozen=True)
class SampleColumn:
    """A column: its texts, None where there is none; its type, where its source has types.

    `quoted` where the source says that its values are texts, as JSON does.
    """

    name: str
    texts: list[str | None]
    quoted: bool = False
    type: str | None = None

    @property
    def present(self) -> list[str]:
        """The texts that there are."""
        return [text for text in self.texts if text is not None]


@dataclass(frozen=True)
class Sample:
    """The columns of the first rows of a source, and the declaration of that source."""

    columns: list[SampleColumn]
    rows: int
    source: tuple[str, list[str]]
    """The name of its class, and its arguments."""


def read_sample(place: str, folder: str, most: int = MOST_ROWS) -> Sample:
    """Read up to `most` rows of a file or a Delta table; `folder` is where its files will land.

    Raises:
        WrongUse: It is not there, has no rows, or is of no format that is known.
    """
    path = Path(place)
    if not path.exists():
        raise WrongUse(f"{place} is not there; give {KNOWN}")
    if (path / "_delta_log").is_dir():
        table = delta_table(str(path.resolve()))
        columns, rows = _typed(read_batches(dataset_of(table)), most)
        return _sample(
            place, columns, rows, ("DeltaSource", [f"table={_quoted(str(path.resolve()))}"])
        )
    packed = path.suffix == ".gz"
    ending = Path(path.stem).suffix if packed else path.suffix
    where = [f"folder={_quoted(folder)}", f"pattern={_quoted('*' + ending + '.gz' * packed)}"]
    if ending == ".parquet" and not packed:
        columns, rows = _typed(pq.ParquetFile(path).iter_batches(), most)
        return _sample(place, columns, rows, ("FileSource", [*where, 'format="parquet"']))
    form = TEXT_FORMATS.get(ending.lower())
    if form is None or path.is_dir():
        raise WrongUse(f"{place} is of no format that is read here; give {KNOWN}")
    text, encoding = _text(gzip.decompress(path.read_bytes()) if packed else path.read_bytes())
    if encoding != "UTF-8":
        where.append(f"encoding={_quoted(encoding)}")
    if form == "json":
        columns, rows = _json_columns(text.splitlines(), place, most)
        return _sample(place, columns, rows, ("FileSource", where))
    columns, rows, delimiter = _csv_columns(text, most)
    more = [] if delimiter == "," else [f"delimiter={_quoted(delimiter)}"]
    return _sample(place, columns, rows, ("FileSource", [*where, 'format="csv"', *more]))


def _sample(
    place: str, columns: list[SampleColumn], rows: int, source: tuple[str, list[str]]
) -> Sample:
    if not rows or not columns:
        raise WrongUse(f"{place} has no rows: nothing can be proposed of it")
    return Sample(columns, rows, source)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _text(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("utf-8-sig"), "UTF-8"
    except UnicodeDecodeError:
        return data.decode("ISO-8859-1"), "ISO-8859-1"


def _csv_columns(text: str, most: int) -> tuple[list[SampleColumn], int, str]:
    first = text.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    lines = csv.reader(io.StringIO(text), delimiter=delimiter)
    names = next(lines, [])
    rows = [row for row in islice(lines, most) if any(row)]
    columns = [
        SampleColumn(name, [row[at] or None if at < len(row) else None for row in rows])
        for at, name in enumerate(names)
    ]
    return columns, len(rows), delimiter


def _json_columns(lines: Iterable[str], place: str, most: int) -> tuple[list[SampleColumn], int]:
    records: list[dict[str, Any]] = []
    for number, line in enumerate(islice((line for line in lines if line.strip()), most), 1):
        try:
            record = json.loads(line, parse_int=Written, parse_float=Written)
        except ValueError as error:
            raise WrongUse(
                f"{place}, line {number}: {error}; write one object a line, without a list around"
            ) from error
        if not isinstance(record, dict):
            raise WrongUse(f"{place}, line {number}: no object; write one object a line")
        records.append(record)
    names = list(dict.fromkeys(name for record in records for name in record))
    return [_json_column(n, [r.get(n) for r in records]) for n in names], len(records)


def _json_column(name: str, values: list[Any]) -> SampleColumn:
    strings = [value for value in values if isinstance(value, str)]
    quoted = any(not isinstance(value, Written) for value in strings)
    return SampleColumn(name, [_written(value) for value in values], quoted)


def _written(value: Any) -> str | None:
    if value is None or value == "":
        return None
    return value if isinstance(value, str) else json.dumps(value)


def _typed(batches: Iterable[pa.RecordBatch], most: int) -> tuple[list[SampleColumn], int]:
    """Columns of typed rows: the texts of their payloads, and the types that fields can have."""
    payloads: list[str] = []
    schema: pa.Schema | None = None
    for batch in batches:
        schema = batch.schema
        payloads += json_objects(batch.slice(0, most - len(payloads))).to_pylist()
        if len(payloads) >= most:
            break
    columns, rows = _json_columns(payloads, "the sample", most)
    types = {field.name: _type_of(field.type) for field in schema or ()}
    names = [*types, *(each.name for each in columns if each.name not in types)]
    by_name = {each.name: each for each in columns}
    return [
        SampleColumn(
            name,
            by_name[name].texts if name in by_name else [None] * rows,
            name in by_name and by_name[name].quoted,
            types.get(name),
        )
        for name in names
    ], rows


def _type_of(kind: pa.DataType) -> str | None:
    """The type of a field for a type of Arrow; None where its texts have to say it."""
    if t.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if kind.precision <= 38 else None
    pairs = (
        (t.is_boolean, "boolean"),
        (t.is_uint64, "decimal(20,0)"),
        (t.is_integer, "long"),
        (t.is_floating, "double"),
        (t.is_timestamp, "timestamp"),
    )
    return next((name for fits, name in pairs if fits(kind)), None)
