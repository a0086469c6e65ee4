"""The latest row of a key, as sinks declare it: by a version, and where it is a deletion."""

from __future__ import annotations

from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.model.table import Table


def check_versioned(table: Table, version: str, keys: tuple[str, ...] = ()) -> None:
    """Refuse to keep the latest row of each key where a column of it, or the version, is none."""
    if not (keys or table.keys):
        raise DeclarationError(f"table '{table.name}': an upsert needs the table's `keys`")
    for name in (*keys, version):
        if name not in table.schema.fieldNames():
            raise DeclarationError(
                f"table '{table.name}': an upsert by '{name}', which is not a column of "
                f"it{did_you_mean(name, table.schema.names)}"
            )


def is_deletion(deleted: str | None) -> str:
    """Returns True if a row deletes its key, in SQL; unknown is no."""
    return f"coalesce(({deleted}), false)" if deleted else "false"
