"""Reprocessings as the library returns them, for tests that play them."""

from datetime import UTC, date, datetime
from typing import Any

from rivermark.backfill.difference import Difference
from rivermark.backfill.result import Reprocessing, TableOutcome


def reprocessing(
    stream: str,
    first: date,
    last: date,
    difference: Difference,
    *,
    tables: tuple[str, ...] = (),
    before: int = 1,
    after: int | None = None,
    **fields: Any,
) -> Reprocessing:
    """One that found the same difference in each table, those of the stream's name by default."""
    defaults: dict[str, Any] = {
        "id": "20260302-120000-abcd",
        "kind": "replaced",
        "at": datetime(2026, 3, 2, 12, tzinfo=UTC),
        "run_id": "run",
        "by": "ada",
    }
    return Reprocessing(
        **defaults | fields,
        stream=stream,
        first=first,
        last=last,
        tables={
            name: TableOutcome(name, before, difference, version_after=after)
            for name in tables or (stream,)
        },
    )
