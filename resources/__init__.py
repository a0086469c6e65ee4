"""Resources of this project's own, beside those that `rivermark.dagster` gives to its runs."""

from __future__ import annotations

from typing import Any, Final

RESOURCES: Final[dict[str, Any]] = {}
"""None yet: streams have the settings of the environment and a Spark session."""
