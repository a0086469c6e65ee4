"""The place of each landed row: exactly one of admitted, late, quarantined.

A late row that was merged since lies in the admitted table as well. It counts as late, once: a row
that is merged twice does not add up.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any, Final

from rivermark.backfill.erasure.record import ERASED_ROWS, erased_places
from rivermark.backfill.late.hours import day_of
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import once_per_snapshot, open_table
from rivermark.lake.sql import query
from rivermark.model.check import CheckResult
from rivermark.model.contract import REPLACED
from rivermark.model.stream import Ingest
from rivermark.model.table import days_between
from rivermark.monitor.recent_batches import NEWEST_BATCHES, batch_before, rows_after
from rivermark.settings import Settings

ACCOUNTED_FOR: Final = "every_row_is_accounted_for"
EXAMPLES: Final = 10
UNKNOWN_DAY: Final = date.min
"""The day of a file of which no row is in any table."""

PLACE: Final = "_file, _ingest_batch, _row"

BY_FILE: Final = """
WITH files AS (
    SELECT file, ingest_batch, sum(rows) AS recorded, sum(admitted) AS recorded_admitted,
           sum(late) AS recorded_late, sum(quarantined) AS recorded_quarantined
    FROM outcomes WHERE stream = $stream AND ingest_batch > $after GROUP BY ALL
),
raw AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n FROM raw_rows
        WHERE _ingest_batch > $after GROUP BY ALL),
admitted AS (
    SELECT a._file AS file, a._ingest_batch AS ingest_batch, count(*) AS n,
           count(DISTINCT l._row) AS merged
    FROM admitted_rows a LEFT JOIN (
        SELECT _file, _ingest_batch, _row FROM late_rows WHERE _ingest_batch > $after
    ) l USING (_file, _ingest_batch, _row)
    WHERE a._ingest_batch > $after GROUP BY ALL
),
late AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n FROM late_rows
         WHERE _ingest_batch > $after GROUP BY ALL),
quarantined AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n
                FROM quarantine_rows WHERE _ingest_batch > $after AND _row IS NOT NULL
                  AND NOT coalesce(list_contains(reasons, $replaced), false)
                GROUP BY ALL),
counted AS (
    SELECT file, ingest_batch, recorded, recorded_admitted, recorded_late, recorded_quarantined,
           coalesce(raw.n, 0) AS landed,
           coalesce(admitted.n, 0) - coalesce(admitted.merged, 0) AS admitted,
           coalesce(late.n, 0) AS late, coalesce(quarantined.n, 0) AS quarantined,
           coalesce(admitted.merged, 0) AS merged
    FROM files
    LEFT JOIN raw USING (file, ingest_batch) LEFT JOIN admitted USING (file, ingest_batch)
    LEFT JOIN late USING (file, ingest_batch) LEFT JOIN quarantined USING (file, ingest_batch)
)
SELECT *, landed <> admitted + late + quarantined OR landed <> recorded
       OR admitted <> recorded_admitted OR late <> recorded_late
       OR quarantined <> recorded_quarantined AS wrong
FROM counted ORDER BY file
"""

ERASED_TOO: Final = ", ".join(
    f"""{name} AS (
    SELECT {columns} FROM {name}_left WHERE _ingest_batch > $after
    UNION ALL SELECT {of_gone} FROM erased
    ANTI JOIN {name}_left USING (_file, _ingest_batch, _row)
    WHERE stream = $stream AND outcome = '{outcome}' AND _ingest_batch > $after)"""  # noqa: S608
    for name, outcome, columns, of_gone in (
        ("raw_rows", "raw", PLACE, PLACE),
        ("admitted_rows", "admitted", PLACE, PLACE),
        ("late_rows", "late", PLACE, PLACE),
        ("quarantine_rows", "quarantine", f"{PLACE}, reasons", f"{PLACE}, []::VARCHAR[]"),
    )
)
"""Rows that were erased count as they were decided, until they are gone and then too."""

PLACES: Final = ("landed", "admitted", "late", "quarantined")


def rows_accounted_for(
    settings: Settings, ingest: Ingest, *, newest_batches: int | None = NEWEST_BATCHES
) -> CheckResult:
    """True if, file by file, rows in = admitted + late + quarantined, as many as were counted.

    Counts only files whose outcome is recorded, which is the last step of a batch's admission: a
    batch in progress is neither counted nor missing.
    """
    files = counted_files(settings, ingest, newest_batches=newest_batches) or []
    wrong = [file for file in files if file["wrong"]]
    rows = {place: sum(int(file[place]) for file in files) for place in (*PLACES, "merged")}
    merged = f" ({rows['merged']:,} of them merged)" if rows["merged"] else ""
    return CheckResult(
        name=ACCOUNTED_FOR,
        severity="critical",
        passed=not wrong,
        observed=(
            f"{rows['landed']:,} rows of {len(files):,} files = "
            f"{rows['admitted']:,} admitted + {rows['late']:,} late{merged} + "
            f"{rows['quarantined']:,} quarantined; {len(wrong):,} files do not add up"
            if files
            else "nothing has landed yet"
        ),
        numbers={
            "files": len(files),
            "files_wrong": len(wrong),
            **{f"rows_{place}": rows[place] for place in PLACES},
            "rows_folded": rows["merged"],
        },
        examples=tuple(
            {k: file[k] for k in ("file", "recorded", *PLACES, "merged")}
            for file in wrong[:EXAMPLES]
        ),
    )


def unaccounted_by_day(settings: Settings, ingest: Ingest) -> dict[date, int]:
    """Rows that do not add up, by each day of event time that their file reaches into.

    A lost row has no event time any more, so every day that it may belong to counts it: a day
    without one is sure. Repeated rows count as well.
    """
    unaccounted: Counter[date] = Counter()
    wrong = [file for file in counted_files(settings, ingest) or () if file["wrong"]]
    days = _days_of_files(settings, ingest, wrong) if wrong else {}
    for file in wrong:
        landed, *decided = (int(file[place]) for place in PLACES)
        rows = max(abs(landed - sum(decided)), abs(int(file["recorded"] or 0) - landed), 1)
        for day in days.get(file["file"], {UNKNOWN_DAY}):
            unaccounted[day] += rows
    return dict(unaccounted)


def counted_files(
    settings: Settings, ingest: Ingest, *, newest_batches: int | None = NEWEST_BATCHES
) -> list[dict[str, Any]] | None:
    """Each file with its rows as landed, as decided and as recorded; None before the first.

    `wrong` is true for a file whose numbers differ.
    """
    lake = settings.lake()
    if not all(lake.exists(t) for t in (INGEST_FILES, *ingest.tables)):
        return None
    # First the outcomes, then the tables, which therefore hold at least the batches of these.
    outcomes = open_table(lake, INGEST_FILES)
    after = batch_before(settings, ingest, newest_batches)
    if after is None:
        return None
    tables = {
        "outcomes": outcomes,
        "raw_rows": rows_after(settings, ingest, ingest.raw, after),
        "admitted_rows": rows_after(settings, ingest, ingest.versions, after),
        "late_rows": rows_after(settings, ingest, ingest.late, after),
        "quarantine_rows": rows_after(settings, ingest, ingest.quarantine, after),
    }
    sql = BY_FILE
    if erased_places(lake, ingest.name):
        left = {f"{name}_left": rows for name, rows in tables.items() if name != "outcomes"}
        tables = {"outcomes": outcomes, "erased": open_table(lake, ERASED_ROWS), **left}
        sql = BY_FILE.replace("WITH files", f"WITH {ERASED_TOO}, files")
    return once_per_snapshot(
        ("files", lake.root, ingest.name, after),
        lambda: query(sql, tables, {"stream": ingest.name, "after": after, "replaced": REPLACED}),
    )


def _days_of_files(
    settings: Settings, ingest: Ingest, files: list[dict[str, Any]]
) -> dict[str, list[date]]:
    """The days from the oldest to the newest row of each file that has any."""
    lake, moments = settings.lake(), dict[str, list[datetime]]()
    names = [file["file"] for file in files]
    for table, column in (
        (ingest.versions, ingest.contract.event_time),
        (ingest.late, ingest.contract.event_time),
        (ingest.quarantine, "event_time"),
    ):
        for row in query(
            f"SELECT _file, min({quoted(column)}) AS oldest, max({quoted(column)}) AS newest"  # noqa: S608
            " FROM rows_of_files WHERE _ingest_batch >= ? AND _file IN (SELECT unnest(?))"
            " GROUP BY 1",
            {"rows_of_files": open_table(lake, table)},
            [min(file["ingest_batch"] for file in files), names],
        ):
            ends = (row[end] for end in ("oldest", "newest") if row[end] is not None)
            moments.setdefault(row["_file"], []).extend(m.astimezone(UTC) for m in ends)
    return {
        name: days_between(day_of(min(ends), ingest.days), day_of(max(ends), ingest.days))
        for name, ends in moments.items()
        if ends
    }
