"""Constraints that another tool gave a table, named where they keep rows away.

The engines show the rows instead, drawn as a table, with what is personal in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from rivermark.lake.delta import delta_table
from rivermark.lake.quoting import quoted, spark_quoted
from rivermark.lake.sql import query
from rivermark.model.errors import RivermarkError

CONSTRAINT: Final = "delta.constraints."


def constraints_of(table: DeltaTable, column: str = "{}") -> dict[str, str]:
    """The conditions, in SQL, that rows of a table must meet, by name."""
    configured = table.metadata().configuration
    rules = {
        name.removeprefix(CONSTRAINT): condition
        for name, condition in configured.items()
        if name.startswith(CONSTRAINT)
    }
    required = [field.name for field in table.schema().fields if not field.nullable]
    return {**{f"NOT NULL of {name}": column.format(name) for name in required}, **rules}


@contextmanager
def constraints_named(path: str, name: str, rows: DataFrame | pa.Table) -> Iterator[None]:
    """Let a write of rows that a constraint refuses say which: RivermarkError without the values.

    Any other error is raised as it is.
    """
    try:
        yield
    except CommitFailedError:
        raise
    except (DeltaError, PySparkException):
        # Raised again from within they would be its context, and their text shows the rows.
        if not (broken := _broken(path, rows)):
            raise
    else:
        return
    listed = "; ".join(f"{rule} ({count:,} rows)" for rule, count in broken.items())
    raise RivermarkError(
        f"table '{name}' has constraints that are not ours, and rows of this batch break them: "
        f"{listed}. Nothing was written. Drop them there (ALTER TABLE ... DROP CONSTRAINT), or "
        "leave such rows out in the build; then run again: the same input is read again"
    )


def _broken(path: str, rows: DataFrame | pa.Table) -> dict[str, int]:
    """The number of rows that break each constraint, of those that any row does."""
    table = delta_table(path)
    is_arrow = isinstance(rows, pa.Table)
    name = f"{quoted('{}')} IS NOT NULL" if is_arrow else f"{spark_quoted('{}')} IS NOT NULL"
    broken = {}
    for rule, condition in constraints_of(table, name).items():
        try:
            # As in Delta, what is unknown is broken.
            where = f"NOT coalesce(({condition}), false)"
            count = (
                query(f"SELECT count(*) AS n FROM rows WHERE {where}", {"rows": rows})[0]["n"]  # noqa: S608
                if isinstance(rows, pa.Table)
                else rows.where(where).count()
            )
        except Exception:  # noqa: S112 - a dialect that this engine does not read
            continue
        if count:
            broken[f"{rule}: {condition}"] = int(count)
    return broken
