"""Late rows of an ingest: how many, how late, from which source, and the money they concern."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rivermark.lake.quoting import quoted
from rivermark.lake.snapshot import once_per_snapshot
from rivermark.lake.sql import connection
from rivermark.model.stream import Ingest
from rivermark.monitor.recent_batches import batch_before, rows_after
from rivermark.monitor.time_span import span
from rivermark.settings import Settings

if TYPE_CHECKING:
    import duckdb

SHOWN: Final = 10

# The late rows are the right side of the join, which is the one that is held in memory.
BY_FILE: Final = """
CREATE TEMP TABLE by_file AS
SELECT a._file, count(*) FILTER (l._row IS NULL) AS valid, count(l._row) AS merged,
       sum({money}) FILTER (l._row IS NULL) AS money
FROM admitted_rows a
LEFT JOIN late_rows l ON a._ingest_batch = l._ingest_batch AND a._file = l._file AND a._row = l._row
WHERE a._ingest_batch > {after} GROUP BY 1
"""
TOTAL: Final = """
SELECT count(*), coalesce(quantile_disc(_late_by_ms, 0.50), 0)::BIGINT,
       coalesce(quantile_disc(_late_by_ms, 0.95), 0)::BIGINT,
       coalesce(quantile_disc(_late_by_ms, 0.99), 0)::BIGINT,
       coalesce(max(_late_by_ms), 0)::BIGINT, sum({money})
FROM late_rows
"""


@dataclass(frozen=True)
class LateFrom:
    """The late rows of one source: a folder below the landing folder, or a file."""

    source: str
    valid: int
    late: int
    p50_ms: int
    p99_ms: int

    @property
    def share(self) -> float:
        """Late rows among the source's valid ones."""
        return self.late / max(1, self.valid)


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """The delay of an ingest's late rows: milliseconds behind the watermark they missed.

    `merged` of them are in the admitted table by now. `money` is the sum over all late rows and
    `money_share` its part of all valid rows' money; None where the ingest declares no money column.
    """

    stream: str
    valid: int = 0
    late: int = 0
    merged: int = 0
    p50_ms: int = 0
    p95_ms: int = 0
    p99_ms: int = 0
    max_ms: int = 0
    money: Decimal | None = None
    money_share: float | None = None
    by_folder: tuple[LateFrom, ...] = ()
    by_file: tuple[LateFrom, ...] = ()

    @property
    def share(self) -> float:
        """Late rows among the valid ones."""
        return self.late / max(1, self.valid)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        parts = [f"{self.late:,} of {self.valid:,} valid rows late ({self.share:.2%})"]
        if self.merged:
            parts.append(f"{self.merged:,} of them merged since")
        if self.late:
            parts.append(
                f"behind the watermark by {span(self.p50_ms)} (half), {span(self.p95_ms)} (95 %), "
                f"{span(self.p99_ms)} (99 %), at most {span(self.max_ms)}"
            )
        if self.money is not None and self.money_share is not None:
            parts.append(f"money concerned: {self.money:,} ({self.money_share:.2%})")
        return "; ".join(parts)


def lateness_of_rows(settings: Settings, ingest: Ingest) -> Lateness:
    """The late rows of an ingest's newest batches in figures.

    The sources with the most late rows come first.
    """
    return once_per_snapshot(
        ("lateness", settings.lake_root, ingest.name), lambda: _lateness(settings, ingest)
    )


def _lateness(settings: Settings, ingest: Ingest) -> Lateness:
    lake = settings.lake()
    if not (lake.exists(ingest.admitted) and lake.exists(ingest.late)):
        return Lateness(stream=ingest.name)
    money = quoted(ingest.money) if ingest.money else "NULL::DECIMAL(38, 9)"
    after = batch_before(settings, ingest)
    after = -1 if after is None else after
    tables = {
        "admitted_rows": rows_after(settings, ingest, ingest.admitted, after),
        "late_rows": rows_after(settings, ingest, ingest.late, after),
    }
    with connection(tables) as duck:
        of_row = f"a.{money}" if ingest.money else money
        duck.execute(BY_FILE.format(money=of_row, after=after))
        names = ("late", "p50_ms", "p95_ms", "p99_ms", "max_ms", "concerned")
        total = dict(zip(names, duck.execute(TOTAL.format(money=money)).fetchall()[0], strict=True))
        whole, merged, paid = duck.execute(
            "SELECT coalesce(sum(valid), 0), coalesce(sum(merged), 0), coalesce(sum(money), 0)"
            " FROM by_file"
        ).fetchall()[0]
        sum_of_late = total.pop("concerned") or Decimal(0)
        concerned = sum_of_late if ingest.money else None
        in_all = (concerned or Decimal(0)) + paid
        return Lateness(
            stream=ingest.name,
            valid=int(whole) + total["late"],
            merged=int(merged),
            **total,
            money=concerned,
            money_share=float(concerned / in_all) if concerned is not None and in_all else None,
            by_folder=_by_source(duck, "regexp_replace(_file, '[^/]*$', '')"),
            by_file=_by_source(duck, "_file"),
        )


def _by_source(duck: duckdb.DuckDBPyConnection, source: str) -> tuple[LateFrom, ...]:
    sources = duck.execute(
        f"""
        WITH late AS (
            SELECT {source} AS source, count(*) AS late,
                   quantile_disc(_late_by_ms, 0.50) AS p50, quantile_disc(_late_by_ms, 0.99) AS p99
            FROM late_rows GROUP BY 1 ORDER BY late DESC, source LIMIT {SHOWN}
        ),
        admitted AS (SELECT {source} AS source, sum(valid) AS n FROM by_file GROUP BY 1)
        SELECT source, late, p50, p99, coalesce(n, 0)::BIGINT
        FROM late LEFT JOIN admitted USING (source) ORDER BY late DESC, source
        """  # noqa: S608 - made of constants
    ).fetchall()
    return tuple(
        LateFrom(source or "./", valid + late, late, int(p50), int(p99))
        for source, late, p50, p99, valid in sources
    )
