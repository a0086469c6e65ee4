"""Names and texts as SQL has them: of DuckDB, delta-rs and Spark."""

from __future__ import annotations


def quoted(column: str) -> str:
    """A column's name as SQL takes any name."""
    return '"' + column.replace('"', '""') + '"'


def spark_quoted(column: str) -> str:
    """A column's name as SQL of Spark takes any name."""
    return "`" + column.replace("`", "``") + "`"


def quoted_text(value: str) -> str:
    """A text as SQL of DuckDB and delta-rs has it."""
    return "'" + value.replace("'", "''") + "'"


def spark_quoted_text(value: str) -> str:
    """A text as SQL of Spark has it, where a backslash escapes."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
