"""Checks of rows in numbers: shares of late and quarantined rows, repeated keys, dropped rows."""

from __future__ import annotations

from typing import Any, Final, cast

from rivermark.backfill.late.merge_log import rows_merged
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query, quoted
from rivermark.lake.statistics import row_count
from rivermark.model.check import CheckResult
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

FEW_LATE: Final = "few_rows_are_late"
FEW_QUARANTINED: Final = "few_rows_are_set_aside"
UNIQUE: Final = "rows_are_unique"
NONE_DROPPED: Final = "no_row_is_late_downstream"
EXAMPLES: Final = 10


def late_share(settings: Settings, ingest: Ingest) -> CheckResult:
    """Late rows of an ingest as a share of its valid ones; those merged since count as late too."""
    lake = settings.lake()
    late, admitted = row_count(lake, ingest.late), row_count(lake, ingest.admitted)
    admitted -= rows_merged(lake, ingest)
    return _share(FEW_LATE, "late", late, late + admitted, ingest.late_below)


def quarantine_share(settings: Settings, ingest: Ingest) -> CheckResult:
    """Quarantined rows of an ingest as a share of all its rows."""
    lake = settings.lake()
    quarantined, raw = row_count(lake, ingest.quarantine), row_count(lake, ingest.raw)
    rows = max(raw, quarantined)
    return _share(FEW_QUARANTINED, "quarantined", quarantined, rows, ingest.quarantine_below)


def _share(name: str, what: str, part: int, whole: int, bound: float) -> CheckResult:
    share = part / whole if whole else 0.0
    return CheckResult(
        name=name,
        severity="warning",
        passed=share <= bound,
        observed=f"{part:,} of {whole:,} rows {what} ({share:.2%}); at most {bound:.2%} may be",
        numbers={f"rows_{what}": part, "rows_looked_at": whole, "share": share, "bound": bound},
    )


def rows_unique(settings: Settings, table: Table) -> CheckResult:
    """Whether the table's declared keys identify its rows, which a restart must not change."""
    lake, keys = settings.lake(), ", ".join(quoted(key) for key in table.keys)
    total, repeated = 0, list[dict[str, object]]()
    if lake.exists(table):
        rows = open_table(lake, table)
        total = rows.count_rows()
        repeated = query(
            # The names are declared in code, and quoted all the same.
            f"SELECT {keys}, count(*) AS copies FROM keyed"  # noqa: S608
            " GROUP BY ALL HAVING count(*) > 1 ORDER BY copies DESC",
            {"keyed": rows},
        )
    surplus = sum(cast(int, row["copies"]) - 1 for row in repeated)
    # Personal keys stay in the table: the number is enough to look them up there.
    shown = [] if set(table.keys) & set(table.personal) else repeated[:EXAMPLES]
    return CheckResult(
        name=UNIQUE,
        severity="critical",
        passed=not repeated,
        observed=(
            f"{len(repeated):,} keys of ({', '.join(table.keys)}) more than once "
            f"among {total:,} rows"
        ),
        numbers={"rows": total, "rows_surplus": surplus},
        examples=tuple({k: str(v) for k, v in row.items()} for row in shown),
    )


def rows_dropped(settings: Settings, stream: str) -> CheckResult:
    """The rows that Spark's operators dropped behind their watermark, over all batches.

    Admission decides lateness with the delay that its readers use, so that an admitted row can be
    late nowhere. A number above zero means that a reader declares less lateness than its source.
    """
    batches, worst = list[dict[str, int]](), list[dict[str, Any]]()
    if settings.lake().exists(STREAM_PROGRESS):
        progress = {"progress": open_table(settings.lake(), STREAM_PROGRESS)}
        batches = query(
            "SELECT count(*) AS batches, coalesce(sum(dropped_by_watermark), 0)::BIGINT AS dropped"
            " FROM progress WHERE stream = ?",
            progress,
            [stream],
        )
        worst = query(
            "SELECT batch_id, run_id, dropped_by_watermark FROM progress"
            " WHERE stream = ? AND dropped_by_watermark > 0"
            " ORDER BY dropped_by_watermark DESC LIMIT ?",
            progress,
            [stream, EXAMPLES],
        )
    [total] = batches or [{"batches": 0, "dropped": 0}]
    return CheckResult(
        name=NONE_DROPPED,
        severity="critical",
        passed=total["dropped"] == 0,
        observed=(
            f"{total['dropped']:,} rows dropped behind the watermark "
            f"in {total['batches']:,} batches"
        ),
        numbers={"rows_dropped": total["dropped"], "batches": total["batches"]},
        examples=tuple(worst),
    )
