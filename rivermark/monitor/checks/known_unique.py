"""Up to which version of each table its keys are known to be unique, across runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rivermark.lake.filesystem import write_file
from rivermark.model.table import Table

if TYPE_CHECKING:
    from rivermark.lake.table_rows import TableRows


class KnownUnique:
    """A file a table in `<state root>/unique`; without it the whole table is looked at once."""

    def __init__(self, state_root: Path) -> None:
        self._folder = state_root / "unique"

    def version(self, table: Table, rows: TableRows) -> int | None:
        """The version that had no repeated key; None for another table of that name, or keys."""
        try:
            known: dict[str, Any] = json.loads(self._path(table).read_text())
            version = int(known.pop("version"))
        except (FileNotFoundError, ValueError, KeyError, AttributeError):
            return None
        return version if known == _identity(table, rows) else None

    def remember(self, table: Table, rows: TableRows) -> None:
        """No key of these rows is repeated."""
        content = {**_identity(table, rows), "version": rows.version}
        # Who may read a lake alone, and not write its state, looks at the whole each time.
        with suppress(OSError):
            write_file(str(self._path(table)), json.dumps(content).encode(), durable=False)

    def forget(self, tables: Iterable[Table]) -> None:
        """Have the whole of the tables looked at the next time."""
        for table in tables:
            self._path(table).unlink(missing_ok=True)

    def _path(self, table: Table) -> Path:
        return self._folder / f"{table.name.replace('/', '.')}.json"


def _identity(table: Table, rows: TableRows) -> dict[str, Any]:
    return {"table_id": rows.table_id, "keys": list(table.keys)}
