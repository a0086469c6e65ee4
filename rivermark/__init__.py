"""The streaming platform: streams as values, run bounded, continuously or again for a day.

PySpark, Delta Lake and nothing of Dagster. The domains in `assets/` declare streams with the names
exported here; `platform_defs/` turns the declarations into Dagster definitions.

The names are loaded when they are first used, so that a part that needs no Spark, such as
`rivermark.process`, is imported without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rivermark.model.contract import Contract, Field, Rule
    from rivermark.model.file_source import FileSource
    from rivermark.model.stream import AnyStream, Ingest, Output, Stream
    from rivermark.model.table import Daily, Table
    from rivermark.model.topology import Topology

__all__ = [
    "AnyStream",
    "Contract",
    "Daily",
    "Field",
    "FileSource",
    "Ingest",
    "Output",
    "Rule",
    "Stream",
    "Table",
    "Topology",
]

_HOMES: Final = {
    "rivermark.model.contract": ("Contract", "Field", "Rule"),
    "rivermark.model.table": ("Daily", "Table"),
    "rivermark.model.file_source": ("FileSource",),
    "rivermark.model.stream": ("AnyStream", "Ingest", "Output", "Stream"),
    "rivermark.model.topology": ("Topology",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(home), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
