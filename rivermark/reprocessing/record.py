"""The register of reprocessings: one row for each table of each, in `ops/reprocessings`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.lake.create import create_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.note import noted
from rivermark.lake.table import Table
from rivermark.watch.query import ask

Kind = Literal["rehearsed", "replaced", "undone", "what-if"]

_TEXTS: Final = pa.map_(pa.string(), pa.string())
_NUMBERS: Final = pa.map_(pa.string(), pa.int64())
COLUMNS: Final[dict[str, tuple[DataType, pa.DataType]]] = {
    "id": (StringType(), pa.string()),
    "at": (TimestampType(), pa.timestamp("us", "UTC")),
    "kind": (StringType(), pa.string()),
    "stream": (StringType(), pa.string()),
    "table": (StringType(), pa.string()),
    "first_day": (DateType(), pa.date32()),
    "last_day": (DateType(), pa.date32()),
    "inputs": (MapType(StringType(), LongType()), _NUMBERS),
    "parameters": (MapType(StringType(), StringType()), _TEXTS),
    "code": (StringType(), pa.string()),
    "version_before": (LongType(), pa.int64()),
    "version_after": (LongType(), pa.int64()),
    "added": (LongType(), pa.int64()),
    "removed": (LongType(), pa.int64()),
    "changed": (LongType(), pa.int64()),
    "unchanged": (LongType(), pa.int64()),
    "conflicts": (LongType(), pa.int64()),
    "commits_meanwhile": (LongType(), pa.int64()),
    "seconds": (DoubleType(), pa.float64()),
    "run_id": (StringType(), pa.string()),
    "by": (StringType(), pa.string()),
    "because": (StringType(), pa.string()),
}
REPROCESSINGS: Final = Table(
    name="ops/reprocessings",
    schema=StructType([StructField(n, kind) for n, (kind, _) in COLUMNS.items()]),
    description="Each time days of a table were rehearsed, replaced, undone or tried another way.",
    event_time="at",
)
ARROW: Final = pa.schema([(n, kind) for n, (_, kind) in COLUMNS.items()])


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row of the register.

    `at` is UTC. `inputs` are the versions read. `version_after` is None where nothing published was
    touched. `conflicts` counts commits that were tried again because another writer was faster,
    `commits_meanwhile` what others committed to the table while the days were computed. `because`
    is the id of the reprocessing that this one undoes or follows.
    """

    id: str
    at: datetime
    kind: Kind
    stream: str
    table: str
    first_day: date
    last_day: date
    inputs: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    version_before: int
    version_after: int | None = None
    added: int = 0
    removed: int = 0
    changed: int = 0
    unchanged: int = 0
    conflicts: int = 0
    commits_meanwhile: int = 0
    seconds: float = 0.0
    run_id: str
    by: str = ""
    because: str | None = None


def new_id(now: datetime | None = None) -> str:
    """An id that sorts by time, such as `20260702-141500-3f2a`."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def whoever() -> str:
    """The account that runs this process."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


def remember(lake: Lake, records: Iterable[Record]) -> None:
    """Append to the register; creates it where needed."""
    rows = []
    for record in records:
        row: dict[str, Any] = asdict(record)
        rows.append({**row, **{k: list(row[k].items()) for k in ("inputs", "parameters")}})
    create_table(lake, REPROCESSINGS)
    path = lake.path(REPROCESSINGS)
    with commit_lock(path):
        write_deltalake(
            path, pa.Table.from_pylist(rows, ARROW), mode="append", commit_properties=noted({})
        )


NEWEST: Final = """
SELECT * FROM register WHERE $stream IS NULL OR stream = $stream
ORDER BY "at" DESC, id DESC, "table" LIMIT $limit
"""


def newest_records(lake: Lake, stream: str | None = None, limit: int = 100) -> list[Record]:
    """The newest rows of the register, of one stream or of all."""
    if not lake.exists(REPROCESSINGS):
        return []
    rows = DeltaTable(lake.path(REPROCESSINGS)).to_pyarrow_dataset()
    found = ask(NEWEST, {"register": rows}, {"stream": stream, "limit": limit})
    return [_record(row) for row in found]


def _record(row: dict[str, Any]) -> Record:
    known = {f.name: row[f.name] for f in fields(Record)}
    known["at"] = known["at"].astimezone(UTC)
    for name in ("inputs", "parameters"):
        known[name] = dict(known[name] or {})
    return Record(**known)
