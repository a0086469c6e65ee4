"""A plugin of dbt-duckdb: a source of dbt is a table of the lake, at a version or a moment."""

from __future__ import annotations

from typing import Any

from dbt.adapters.duckdb.plugins import BasePlugin

from rivermark.ask.lake_table import table


class Plugin(BasePlugin):  # type: ignore[misc]  # dbt-duckdb has no types
    """Reads a source's table `SOURCE/TABLE`, or what its `meta` calls `table`.

    `meta` may have a `version` (a number or a moment in UTC; empty, as without it, is the newest),
    and the plugin's configuration in the profile a `home`.
    """

    def initialize(self, config: dict[str, Any]) -> None:
        """Take the configuration of the profile."""
        self._home = config.get("home")

    def load(self, source_config: Any) -> Any:
        """The rows as DuckDB reads them: the columns and files that a model needs."""
        name = source_config.get("table") or f"{source_config.schema}/{source_config.identifier}"
        # Version 0 is one, too.
        version = str(source_config.get("version", ""))
        return table(name, version or None, home=self._home).rows

    def default_materialization(self) -> str:
        """A view: rows are not copied into dbt's database."""
        return "view"
