"""The register of reprocessings: one row for each table of each, in `ops/reprocessings`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.sql import query
from rivermark.lake.system_tables import append_rows
from rivermark.model.table import Table

Kind = Literal["rehearsed", "replaced", "undone", "what-if"]

REPROCESSINGS: Final = Table(
    name="ops/reprocessings",
    schema=(
        "id string, at timestamp, kind string, stream string, table string, first_day date,"
        " last_day date, inputs map<string, long>, parameters map<string, string>, code string,"
        " version_before long, version_after long, added long, removed long, changed long,"
        " unchanged long, conflicts long, commits_meanwhile long, seconds double, run_id string,"
        " by string, because string"
    ),
    description="Each time days of a table were rehearsed, replaced, undone or tried another way.",
    event_time="at",
)


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


def account() -> str:
    """The account that runs this process."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or f"uid {os.getuid()}"


def register(lake: Lake, records: Iterable[Record]) -> None:
    """Append to the register; creates the table where needed."""
    rows = []
    for record in records:
        row: dict[str, Any] = asdict(record)
        rows.append({**row, **{k: list(row[k].items()) for k in ("inputs", "parameters")}})
    append_rows(lake, REPROCESSINGS, rows, {})


NEWEST: Final = """
SELECT * FROM register WHERE $stream IS NULL OR stream = $stream
ORDER BY "at" DESC, id DESC, "table" LIMIT $limit
"""


def newest_records(lake: Lake, stream: str | None = None, limit: int = 100) -> list[Record]:
    """The newest rows of the register, of one stream or of all."""
    if not lake.exists(REPROCESSINGS):
        return []
    table = dataset_of(delta_table(lake.path(REPROCESSINGS)))
    rows = query(NEWEST, {"register": table}, {"stream": stream, "limit": limit})
    return [_record(row) for row in rows]


def _record(row: dict[str, Any]) -> Record:
    values = {f.name: row[f.name] for f in fields(Record)}
    values["at"] = values["at"].astimezone(UTC)
    for name in ("inputs", "parameters"):
        values[name] = dict(values[name] or {})
    return Record(**values)
