"""What was folded and what it still owes, as a table: so that a kill at any moment is finished.

A fold is written down before its first row moves (`begun`), and again when it is over: what each
ingest got (`done`), and which days of which streams are to be computed again once they are closed
(`owed`; the newest such row counts). A fold that began and is not done is taken up by the next one.
Days that follow from a reprocessing are written down beside them (`owes`) until they are computed,
or until a fold has taken them among its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import uuid4

from deltalake import DeltaTable
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.backfill.affected_days import Changed, DaysByStream, all_reached, of_hours
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.sql import ask
from rivermark.lake.system_tables import append_rows
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology

MONEY: Final = DecimalType(38, 9)
OWED: Final = StructType([StructField("stream", StringType()), StructField("day", DateType())])
FOLDS: Final = Table(
    name="ops/folds",
    schema=StructType(
        [
            StructField("fold", StringType()),
            StructField("at", TimestampType()),
            StructField("run", StringType()),
            StructField("state", StringType()),
            StructField("stream", StringType()),
            StructField("table_id", StringType()),
            StructField("late_version", LongType()),
            StructField("hours", ArrayType(TimestampType())),
            StructField("rows", LongType()),
            StructField("money", MONEY),
            StructField("version_before", LongType()),
            StructField("version_after", LongType()),
            StructField("settled_through", LongType()),
            StructField("owed", ArrayType(OWED)),
        ]
    ),
    description="Folds of late rows: begun, done, and the days that are still owed after each.",
    event_time="at",
)


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A fold of one ingest: which version of its late table it reads, and which hours (UTC)."""

    fold: str
    stream: str
    late_version: int
    hours: tuple[datetime, ...]


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a fold brought to an ingest's admitted table, and between which versions of it.

    Of arrivals up to `settled_through` no late row is left.
    """

    stream: str
    rows: int
    money: Decimal | None
    version_before: int
    version_after: int
    settled_through: int


def identity(lake: Lake, ingest: Ingest) -> str:
    """The admitted table's own id: a table made anew has late rows of its own."""
    return str(DeltaTable(lake.path(ingest.admitted)).metadata().id)


def begin(lake: Lake, begun: Sequence[Begun], ids: Mapping[str, str], run: str) -> None:
    """Write down what is about to be folded."""
    _append(
        lake,
        run,
        [
            {**vars(b), "hours": list(b.hours), "state": "begun", "table_id": ids[b.stream]}
            for b in begun
        ],
    )


def finish(
    lake: Lake,
    fold: str,
    folds: Iterable[str],
    done: Sequence[Done],
    owed: DaysByStream,
    ids: Mapping[str, str],
    run: str,
) -> None:
    """Write down, in one commit, that these `folds` are over, what they brought, what is owed."""
    _append(
        lake,
        run,
        [
            *({"fold": f, "state": "over"} for f in sorted({fold, *folds})),
            *({**vars(d), "fold": fold, "state": "done", "table_id": ids[d.stream]} for d in done),
            {"fold": fold, "state": "owed", "owed": _rows_of(owed)},
        ],
    )


def unfinished_merges(lake: Lake) -> list[Begun]:
    """Folds that began and are not over: a kill came between."""
    rows = _ask(
        lake,
        "SELECT * FROM folds WHERE state = 'begun'"
        " AND fold NOT IN (SELECT fold FROM folds WHERE state = 'over') ORDER BY \"at\"",
    )
    return [
        Begun(
            fold=row["fold"],
            stream=row["stream"],
            late_version=row["late_version"],
            hours=tuple(hour.astimezone(UTC) for hour in row["hours"]),
        )
        for row in rows
    ]


def owe(lake: Lake, cause: str, owed: DaysByStream, run: str) -> None:
    """Write down which days follow from a reprocessing, before the first of them is computed."""
    create_table(lake, FOLDS)
    _append(lake, run, [{"fold": cause, "state": "owes", "owed": _rows_of(owed)}])


def settle(lake: Lake, cause: str, left: DaysByStream, run: str) -> None:
    """Write down, in one commit, that they are computed, but for what is `left`."""
    still = [{"fold": uuid4().hex, "state": "owes", "owed": _rows_of(left)}] if left else []
    _append(lake, run, [{"fold": cause, "state": "over"}, *still])


def open_causes(lake: Lake) -> set[str]:
    """What days were written down for that are not all computed yet."""
    rows = _ask(
        lake,
        "SELECT fold FROM folds WHERE state = 'owes'"
        " AND fold NOT IN (SELECT fold FROM folds WHERE state = 'over')",
    )
    return {row["fold"] for row in rows}


def debts(lake: Lake) -> DaysByStream:
    """The days that folds and reprocessings still owe, by stream."""
    rows = _ask(lake, "SELECT owed FROM folds WHERE state = 'owed' ORDER BY \"at\" DESC LIMIT 1")
    rows += _ask(
        lake,
        "SELECT owed FROM folds WHERE state = 'owes'"
        " AND fold NOT IN (SELECT fold FROM folds WHERE state = 'over')",
    )
    found: DaysByStream = {}
    for row in rows:
        for debt in row["owed"] or ():
            found.setdefault(debt["stream"], set()).add(debt["day"])
    return found


def pending_days(lake: Lake, topology: Topology) -> DaysByStream:
    """Days, by stream, that follow from a fold or a reprocessing above and were not computed since.

    They were open then, or a fold was broken off.
    """
    found = debts(lake)
    changed: dict[str, Changed] = {}
    names = {stream.name for stream in topology.streams}
    for begun in unfinished_merges(lake):
        ingest = topology.named(begun.stream) if begun.stream in names else None
        if isinstance(ingest, Ingest):
            table = ingest.admitted.name
            changed[table] = changed.get(table, Changed()) | of_hours(begun.hours)
    for stream, days in all_reached(topology, changed).items():
        found[stream] = found.get(stream, set()) | days
    return found


def settled_through(lake: Lake, ingest: Ingest) -> int:
    """The arrival up to which every late row is known to be folded; -1 for none."""
    newest = _of(lake, ingest, "max(settled_through)")
    return -1 if newest is None else int(newest)


def rows_merged(lake: Lake, ingest: Ingest) -> int:
    """How many late rows were folded into the ingest's table, by what was written down."""
    return int(_of(lake, ingest, "sum(rows)") or 0)


def _rows_of(owed: DaysByStream) -> list[dict[str, Any]]:
    return [{"stream": s, "day": d} for s, days in sorted(owed.items()) for d in sorted(days)]


def _of(lake: Lake, ingest: Ingest, what: str) -> Any:
    if not lake.exists(FOLDS):
        return None
    sql = (
        f"SELECT {what} AS found FROM folds"  # noqa: S608 - one of two constants
        " WHERE state = 'done' AND stream = ? AND table_id = ?"
    )
    return _ask(lake, sql, [ingest.name, identity(lake, ingest)])[0]["found"]


def _ask(lake: Lake, sql: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
    if not lake.exists(FOLDS):
        return []
    return ask(sql, {"folds": DeltaTable(lake.path(FOLDS)).to_pyarrow_dataset()}, values)


def _append(lake: Lake, run: str, rows: Sequence[Mapping[str, Any]]) -> None:
    now = datetime.now(UTC)
    append_rows(lake, FOLDS, [{"at": now, "run": run, **row} for row in rows], {"run": run})
