"""A DuckDB file with a view of each table of a local lake, for tools that open such files.

A view reads the table's log whenever it is asked, so it shows what is committed at that moment, and
needs no extension (docs/decisions/0035-views-read-the-log.md).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError

from rivermark.ask.lake_table import tables_in
from rivermark.ask.result_files import check_place
from rivermark.ask.sql import one_line
from rivermark.lake.delta import check_readable, delta_table
from rivermark.lake.filesystem import filesystem, is_local, replacing
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.model.errors import RivermarkError, WrongUse

VIEW: Final = r"""
CREATE VIEW {view} AS
WITH entries AS MATERIALIZED (
  SELECT add.path AS added, remove.path AS removed, protocol.minReaderVersion AS reader,
    TRY_CAST(regexp_extract(filename, '/(\d{{20}})\.json$', 1) AS BIGINT) AS version,
    FALSE AS whole
  FROM read_json('{glob}/_delta_log/*.json', format = 'newline_delimited', filename = TRUE,
    columns = {{
      add: 'STRUCT(path VARCHAR)', remove: 'STRUCT(path VARCHAR)',
      protocol: 'STRUCT(minReaderVersion INT)'
    }})
  {checkpoints}
), base AS MATERIALIZED (
  SELECT coalesce(max(version) FILTER (whole), -1) AS version FROM entries
), since AS MATERIALIZED (
  SELECT entries.* FROM entries, base
  WHERE entries.version > base.version OR entries.version = base.version AND whole
), live AS MATERIALIZED (
  SELECT '{folder}/' || url_decode(coalesce(added, removed)) AS path FROM since
  WHERE added IS NOT NULL OR removed IS NOT NULL
  GROUP BY path HAVING arg_max(added IS NOT NULL, version)
), sound AS MATERIALIZED (
  SELECT CASE
    WHEN max(since.version) - any_value(base.version)
        > count(DISTINCT since.version) FILTER (NOT whole)
      OR max(reader) > {reader}
    THEN error('table {table} has another log: write this file again by rivermark sql --views')
    WHEN EXISTS (FROM live ANTI JOIN glob('{glob}/*.parquet') AS found ON found.file = live.path)
    THEN error('a file of table {table} is missing; see rivermark fsck {table}')
    ELSE TRUE END AS is_sound
  FROM since, base
)
SELECT {columns}
FROM (SELECT path FROM live, sound WHERE is_sound) AS live
JOIN read_parquet('{glob}/*.parquet', filename = '_read_from', union_by_name = TRUE) AS stored
  ON stored._read_from = live.path
"""
"""The rows of the files that the log names.

Files of the log are listed before those of the table, so that no commit in between hides rows.
"""
CHECKPOINTS: Final = r"""UNION ALL
  SELECT add.path, NULL, protocol.minReaderVersion,
    TRY_CAST(regexp_extract(
      filename, '/(\d{{20}})\.checkpoint(?:\.\d+\.\d+)?\.parquet$', 1) AS BIGINT),
    TRUE
  FROM read_parquet(
    '{glob}/_delta_log/*.checkpoint*.parquet', filename = TRUE, union_by_name = TRUE)
"""


def write_views(
    lake: Lake, file: Path, hidden: Mapping[str, Collection[str]]
) -> tuple[list[str], dict[str, str]]:
    """Write the file; returns the tables that it shows, and why others are left out.

    `hidden` are columns by table that no view has. An older file is replaced when all is written.

    Raises:
        WrongUse: The lake is not on this machine's disks, or the file cannot be written there.
    """
    if not is_local(lake.root):
        raise WrongUse(f"{lake.root} is not a local folder: query its tables with `rivermark sql`")
    check_place(file)
    shown, left_out = [], {}
    with replacing(file) as draft, duckdb.connect(str(draft)) as engine:
        for name in sorted(tables_in(lake)):
            try:
                _write_view(engine, lake, name, hidden.get(name, ()))
                shown.append(name)
            except (RivermarkError, DeltaProtocolError, duckdb.Error) as error:
                left_out[name] = one_line(error)
    return shown, left_out


def _write_view(
    engine: duckdb.DuckDBPyConnection, lake: Lake, name: str, hidden: Collection[str]
) -> None:
    delta = delta_table(lake.path(name))
    check_readable(delta)
    folder = filesystem(lake.path(name))[1].rstrip("/")
    _check_files(delta, Path(folder))
    # A folder's own * and ? are none of a pattern.
    pattern = re.sub(r"([*?])", r"[\1]", folder)
    glob, folder = (path.replace("'", "''") for path in (pattern, folder))
    has_checkpoint = any(Path(folder, "_delta_log").glob("*.checkpoint*.parquet"))
    checkpoints = CHECKPOINTS.format(glob=glob) if has_checkpoint else ""
    schema, _, rest = name.partition("/")
    engine.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
    engine.execute(
        VIEW.format(
            view=f"{quoted(schema)}.{quoted(rest)}",
            table=name,
            folder=folder,
            glob=glob,
            checkpoints=checkpoints,
            reader=delta.protocol().min_reader_version,
            columns=_columns(engine, delta, glob, hidden),
        )
    )


def _check_files(delta: DeltaTable, folder: Path) -> None:
    if delta.metadata().partition_columns:
        raise RivermarkError("partitioned: query it with `rivermark sql`")
    if not any(folder.glob("*.parquet")):
        raise RivermarkError("no rows yet: write the file again once it has some")


def _columns(
    engine: duckdb.DuckDBPyConnection, delta: DeltaTable, glob: str, hidden: Collection[str]
) -> str:
    """The table's columns; null is one that no file has yet."""
    files = f"FROM read_parquet('{glob}/*.parquet', union_by_name = TRUE)"
    in_files = {row[0] for row in engine.execute(f"DESCRIBE {files}").fetchall()}
    names = [field.name for field in delta.schema().fields if field.name not in hidden]
    return ", ".join(f"{'stored.' if n in in_files else 'NULL AS '}{quoted(n)}" for n in names)
