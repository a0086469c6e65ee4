"""Where each landed row went: exactly one of admitted, late, set aside.

A late row that was folded since lies in the admitted table as well. It counts as late, once: a row
that is folded twice does not add up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import once, opened
from rivermark.lake.sql import ask
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.monitor.checks.check import Answer
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyarrow import dataset

SHOWN: Final = 10
NEWEST_BATCHES: Final = 500
"""Ingest batches looked at on a clock, so that a look costs the same after a year."""

BY_FILE: Final = """
WITH files AS (
    SELECT file, ingest_batch, sum(rows) AS said, sum(admitted) AS said_admitted,
           sum(late) AS said_late, sum(quarantined) AS said_quarantined
    FROM outcomes WHERE stream = $stream AND ingest_batch > $after GROUP BY ALL
),
raw AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n FROM raw_rows
        WHERE _ingest_batch > $after GROUP BY ALL),
admitted AS (
    SELECT a._file AS file, a._ingest_batch AS ingest_batch, count(*) AS n,
           count(DISTINCT l._row) AS folded
    FROM admitted_rows a LEFT JOIN (
        SELECT _file, _ingest_batch, _row FROM late_rows WHERE _ingest_batch > $after
    ) l USING (_file, _ingest_batch, _row)
    WHERE a._ingest_batch > $after GROUP BY ALL
),
late AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n FROM late_rows
         WHERE _ingest_batch > $after GROUP BY ALL),
aside AS (SELECT _file AS file, _ingest_batch AS ingest_batch, count(*) AS n FROM quarantine_rows
          WHERE _ingest_batch > $after AND _row IS NOT NULL GROUP BY ALL),
counted AS (
    SELECT file, ingest_batch, said, said_admitted, said_late, said_quarantined,
           coalesce(raw.n, 0) AS landed,
           coalesce(admitted.n, 0) - coalesce(admitted.folded, 0) AS admitted,
           coalesce(late.n, 0) AS late, coalesce(aside.n, 0) AS quarantined,
           coalesce(admitted.folded, 0) AS folded
    FROM files
    LEFT JOIN raw USING (file, ingest_batch) LEFT JOIN admitted USING (file, ingest_batch)
    LEFT JOIN late USING (file, ingest_batch) LEFT JOIN aside USING (file, ingest_batch)
)
SELECT *, landed <> admitted + late + quarantined OR landed <> said OR admitted <> said_admitted
       OR late <> said_late OR quarantined <> said_quarantined AS wrong
FROM counted ORDER BY file
"""

PLACES: Final = ("landed", "admitted", "late", "quarantined")


def rows_accounted_for(
    settings: Settings, ingest: Ingest, *, newest_batches: int | None = NEWEST_BATCHES
) -> Answer:
    """Whether, file by file, rows in = admitted + late + set aside, and as many as were counted.

    Looks only at files whose outcome is written down, which is the last thing the door does with a
    batch: what is still under way is neither here nor missing.
    """
    files = counted_files(settings, ingest, newest_batches=newest_batches)
    if files is None:
        return Answer(holds=True, sentence="nothing has landed yet", numbers={"files": 0})
    wrong = [file for file in files if file["wrong"]]
    numbers: dict[str, int | float] = {
        "files": len(files),
        "files_wrong": len(wrong),
        **{f"rows_{what}": sum(int(file[what]) for file in files) for what in (*PLACES, "folded")},
    }
    folded = numbers["rows_folded"]
    return Answer(
        holds=not wrong,
        sentence=(
            f"{numbers['rows_landed']:,} rows of {numbers['files']:,} files = "
            f"{numbers['rows_admitted']:,} admitted + {numbers['rows_late']:,} late"
            f"{f' ({folded:,} of them folded)' if folded else ''} + "
            f"{numbers['rows_quarantined']:,} set aside; {len(wrong):,} files do not add up"
        ),
        numbers=numbers,
        offenders=tuple(
            {k: file[k] for k in ("file", "said", *PLACES, "folded")} for file in wrong[:SHOWN]
        ),
    )


def counted_files(
    settings: Settings, ingest: Ingest, *, newest_batches: int | None = NEWEST_BATCHES
) -> list[dict[str, Any]] | None:
    """Each file with its rows as landed, as decided and as written down; None before the first.

    `wrong` says of a file that these do not agree.
    """
    lake = settings.lake()
    if not all(lake.exists(t) for t in (INGEST_FILES, *ingest.tables)):
        return None
    # First the outcomes, then the tables, which therefore hold at least the batches of these.
    outcomes = _rows(settings, INGEST_FILES)
    newest = ask(
        "SELECT max(ingest_batch) AS newest FROM outcomes WHERE stream = ?",
        {"outcomes": outcomes},
        [ingest.name],
    )[0]["newest"]
    if newest is None:
        return None
    after = -1 if newest_batches is None else max(-1, int(newest) - newest_batches)
    tables = {
        "outcomes": outcomes,
        "raw_rows": _rows(settings, ingest.raw),
        "admitted_rows": _rows(settings, ingest.admitted),
        "late_rows": _rows(settings, ingest.late),
        "quarantine_rows": _rows(settings, ingest.quarantine),
    }
    return once(
        ("files", lake.root, ingest.name, after),
        lambda: ask(BY_FILE, tables, {"stream": ingest.name, "after": after}),
    )


def _rows(settings: Settings, table: Table) -> dataset.Dataset:
    return opened(settings.lake(), table)
