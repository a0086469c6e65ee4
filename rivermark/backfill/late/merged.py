"""Late rows that have been merged into the admitted table, and those that have not.

A row's place (batch, file, line) is the same in both tables, and no two rows share one. So a late
row is merged when the admitted table holds its place. The record of merges, which is written before
the first row moves, only says into which hours any were merged, so that no others are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.backfill.pending import hours_merged
from rivermark.lake.day_predicates import moments_between
from rivermark.lake.delta import read_rows
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query
from rivermark.model.stream import Ingest
from rivermark.model.time import FIRST
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyarrow import dataset

PLACE: Final = ("_ingest_batch", "_file", "_row")
"""Where a row came from: no two rows of an ingest share it."""
NEVER: Final = -1
"""The batch up to which all late rows are known to be merged, where nothing is known."""

OF_LATE: Final = "SEMI JOIN late_rows USING (_ingest_batch, _file, _row)"
ADMITTED_ON_TIME: Final = (
    "(SELECT * FROM admitted_rows ANTI JOIN late_rows USING (_ingest_batch, _file, _row))"
)
"""The admitted rows without those that were merged: what came in time."""

# The late rows are the right side of the join, which is the one that is held in memory.
MERGED: Final = """
WITH merged AS (
    SELECT _ingest_batch, _file, _row FROM admitted_rows {of_late}
    WHERE {time} BETWEEN $oldest AND $newest
),
wanted AS (SELECT * FROM late_rows {kind} JOIN merged USING (_ingest_batch, _file, _row))
"""


@dataclass(frozen=True)
class LateHour:
    """Late rows whose event time lies in the hour that begins at `hour` (UTC), and their money.

    `money` is None where the ingest declares no money column.
    """

    hour: datetime
    rows: int
    money: Decimal | None = None


def merged_by_hour(
    settings: Settings, ingest: Ingest, start: datetime, end: datetime
) -> dict[datetime, LateHour]:
    """The late rows of [start, end) that the admitted table holds, by hour."""
    return _by_hour(settings, ingest, "SEMI", start, end, NEVER)


def unmerged_by_hour(
    settings: Settings,
    ingest: Ingest,
    start: datetime | None = None,
    end: datetime | None = None,
    *,
    after: int = NEVER,
) -> dict[datetime, LateHour]:
    """The late rows that the admitted table does not hold, by hour, of all times by default.

    Of batches up to `after` all late rows are known to be merged: they are not read.
    """
    return _by_hour(settings, ingest, "ANTI", start, end, after)


def newest_merged(settings: Settings, ingest: Ingest, *, after: int = NEVER) -> int:
    """The newest batch up to which every late row is merged, at least `after`."""
    late = _Late.read(settings, ingest, None, None, after)
    if late is None:
        return after
    first = late.select("ANTI", "min(_ingest_batch) AS batch")[0]["batch"]
    return int(late.newest_batch if first is None else first - 1)


def _by_hour(
    settings: Settings,
    ingest: Ingest,
    kind: Literal["SEMI", "ANTI"],
    start: datetime | None,
    end: datetime | None,
    after: int,
) -> dict[datetime, LateHour]:
    late = _Late.read(settings, ingest, start, end, after)
    if late is None:
        return {}
    time = quoted(ingest.contract.event_time)
    money = f"sum({quoted(ingest.money)})" if ingest.money else "NULL"
    rows = late.select(
        kind,
        f"date_trunc('hour', {time}) AS hour, count(*) AS n, {money} AS money",
        "GROUP BY 1 ORDER BY 1",
    )
    nothing = Decimal(0) if ingest.money else None
    hours = (
        LateHour(row["hour"].astimezone(UTC), row["n"], row["money"] or nothing) for row in rows
    )
    return {hour.hour: hour for hour in hours}


@dataclass(frozen=True)
class _Late:
    """Late rows by their places, and the admitted table beside them.

    `merged` is the span of all hours into which any were merged; None where none ever were.
    """

    rows: pa.Table
    admitted: dataset.Dataset
    time: str
    merged: tuple[datetime, datetime] | None

    @classmethod
    def read(
        cls,
        settings: Settings,
        ingest: Ingest,
        start: datetime | None,
        end: datetime | None,
        after: int,
    ) -> _Late | None:
        """The late rows of [start, end) that came after a batch; None if there are none."""
        lake = settings.lake()
        if not (lake.exists(ingest.late) and lake.exists(ingest.admitted)):
            return None
        time = ingest.contract.event_time
        wanted = pc.field("_ingest_batch") > after
        if start is not None and end is not None:
            wanted &= moments_between(time, start, end)
        columns = [*PLACE, time, *([ingest.money] if ingest.money else [])]
        late = open_table(lake, ingest.late)
        rows = read_rows(late, columns=columns, filter=wanted)
        if not rows.num_rows:
            return None
        admitted = open_table(lake, ingest.admitted)
        hours = hours_merged(lake, ingest.name, FIRST)
        span = (min(hours), max(hours) + timedelta(hours=1)) if hours else None
        return cls(rows, admitted, time, span)

    @property
    def newest_batch(self) -> int:
        """The newest batch of which a row is late."""
        return int(pc.max(self.rows["_ingest_batch"]).as_py())

    def select(
        self, kind: Literal["SEMI", "ANTI"], what: str, more: str = ""
    ) -> list[dict[str, Any]]:
        """The answer of a query over the rows that are merged (SEMI) or not (ANTI)."""
        from pyarrow import dataset as ds  # It imports pandas, which takes a second.

        span = pc.min_max(self.rows[self.time]).as_py()
        if self.merged is None:
            admitted = ds.dataset(self.admitted.schema.empty_table())
        else:
            admitted = self.admitted
            span = {
                "min": max(span["min"], self.merged[0]),
                "max": min(span["max"], self.merged[1]),
            }
        rows = MERGED.format(time=quoted(self.time), kind=kind, of_late=OF_LATE)
        return query(
            f"{rows} SELECT {what} FROM wanted {more}",  # noqa: S608 - declared columns, quoted
            {"late_rows": ds.dataset(self.rows), "admitted_rows": admitted},
            {"oldest": span["min"], "newest": span["max"]},
        )
