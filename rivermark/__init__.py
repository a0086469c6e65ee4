"""The streaming platform: streams as values, run bounded, continuously or again for a day.

A project declares streams with the names exported here and by `rivermark.sources`,
`rivermark.sinks`, `rivermark.restart`, `rivermark.operators`, `rivermark.process` and
`rivermark.quality`; `rivermark.dagster`, the only room that knows Dagster, turns the declarations
into Dagster definitions.

The names are loaded when they are first used, so that a part that needs no Spark, such as
`rivermark.process`, is imported without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rivermark.ask.lake_table import table
    from rivermark.model import expectations as expect
    from rivermark.model import field_readers as readers
    from rivermark.model.contract import Contract, Field, Rule
    from rivermark.model.ddl import struct_type as columns
    from rivermark.model.domain import Domain
    from rivermark.model.errors import DeclarationError, RivermarkError
    from rivermark.model.ingest import Ingest
    from rivermark.model.plot import Marks, Plot
    from rivermark.model.rule import Expectation
    from rivermark.model.stream import AnyStream, Output, Stream
    from rivermark.model.suite import Suite
    from rivermark.model.table import Daily, Table
    from rivermark.model.topology import Topology

_PLACES: Final = {
    "AnyStream": "model.stream:AnyStream",
    "Contract": "model.contract:Contract",
    "Daily": "model.table:Daily",
    "DeclarationError": "model.errors:DeclarationError",
    "Domain": "model.domain:Domain",
    "Expectation": "model.rule:Expectation",
    "Field": "model.contract:Field",
    "Ingest": "model.ingest:Ingest",
    "Marks": "model.plot:Marks",
    "Output": "model.stream:Output",
    "Plot": "model.plot:Plot",
    "RivermarkError": "model.errors:RivermarkError",
    "Rule": "model.contract:Rule",
    "Stream": "model.stream:Stream",
    "Suite": "model.suite:Suite",
    "Table": "model.table:Table",
    "Topology": "model.topology:Topology",
    "columns": "model.ddl:struct_type",
    "expect": "model.expectations",
    "readers": "model.field_readers",
    "table": "ask.lake_table:table",
}
"""Where in `rivermark` each name, function and module is."""
__all__ = [
    "AnyStream",
    "Contract",
    "Daily",
    "DeclarationError",
    "Domain",
    "Expectation",
    "Field",
    "Ingest",
    "Marks",
    "Output",
    "Plot",
    "RivermarkError",
    "Rule",
    "Stream",
    "Suite",
    "Table",
    "Topology",
    "columns",
    "expect",
    "readers",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    public = import_module(f"{__name__}.{module}")
    globals()[name] = getattr(public, attribute) if attribute else public
    return globals()[name]
