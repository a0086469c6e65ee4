"""No row twice: what a restart must never do to a table."""

from __future__ import annotations

from typing import Final

from rivermark.lake.snapshot import opened
from rivermark.lake.sql import ask, quoted
from rivermark.model.table import Table
from rivermark.monitor.checks.check import Answer
from rivermark.settings import Settings

SHOWN: Final = 10


def rows_unique(settings: Settings, table: Table) -> Answer:
    """Whether the table's declared keys tell its rows apart."""
    lake = settings.lake()
    if not lake.exists(table):
        return Answer(holds=True, sentence="the table is not there yet", numbers={"rows": 0})
    rows = opened(lake, table)
    keys = ", ".join(quoted(key) for key in table.keys)
    total = rows.count_rows()
    repeated = ask(
        # The names are declared in code, and quoted all the same.
        f"SELECT {keys}, count(*) AS copies FROM found"  # noqa: S608
        " GROUP BY ALL HAVING count(*) > 1 ORDER BY copies DESC",
        {"found": rows},
    )
    # Personal keys stay in the table: the number is enough to go and look there.
    shown = [] if set(table.keys) & set(table.personal) else repeated[:SHOWN]
    return Answer(
        holds=not repeated,
        sentence=(
            f"{len(repeated):,} keys of ({', '.join(table.keys)}) more than once "
            f"among {total:,} rows"
        ),
        numbers={
            "rows": total,
            "rows_surplus": sum(int(row["copies"]) - 1 for row in repeated),
        },
        offenders=tuple({k: str(v) for k, v in row.items()} for row in shown),
    )
