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
    from rivermark.model import expectations as expect
    from rivermark.model import field_readers as readers
    from rivermark.model.column_type import ColumnType
    from rivermark.model.contract import Contract, Field, Rule
    from rivermark.model.domain import Domain
    from rivermark.model.errors import DeclarationError, RivermarkError
    from rivermark.model.file_source import FileSource
    from rivermark.model.ingest import Ingest
    from rivermark.model.restart_strategy import FixedDelay, NoRestart
    from rivermark.model.rule import Expectation
    from rivermark.model.stream import AnyStream, Output, Stream
    from rivermark.model.suite import Suite
    from rivermark.model.table import Daily, Table
    from rivermark.model.topology import Topology

__all__ = [
    "AnyStream",
    "ColumnType",
    "Contract",
    "Daily",
    "DeclarationError",
    "Domain",
    "Expectation",
    "Field",
    "FileSource",
    "FixedDelay",
    "Ingest",
    "NoRestart",
    "Output",
    "RivermarkError",
    "Rule",
    "Stream",
    "Suite",
    "Table",
    "Topology",
    "expect",
    "readers",
]

_MODULES: Final = {
    "AnyStream": "stream",
    "ColumnType": "column_type",
    "Contract": "contract",
    "Daily": "table",
    "DeclarationError": "errors",
    "Domain": "domain",
    "Expectation": "rule",
    "Field": "contract",
    "FileSource": "file_source",
    "FixedDelay": "restart_strategy",
    "Ingest": "ingest",
    "NoRestart": "restart_strategy",
    "Output": "stream",
    "RivermarkError": "errors",
    "Rule": "contract",
    "Stream": "stream",
    "Suite": "suite",
    "Table": "table",
    "Topology": "topology",
}
"""The module of `rivermark.model` that holds each name."""

_WHOLE: Final = {"expect": "expectations", "readers": "field_readers"}
"""Modules of `rivermark.model` that are public as a whole, under another name."""


def __getattr__(name: str) -> Any:
    public: Any
    if name in _WHOLE:
        public = import_module(f"rivermark.model.{_WHOLE[name]}")
    elif name in _MODULES:
        public = getattr(import_module(f"rivermark.model.{_MODULES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = public
    return public
