"""The streaming platform: streams as values, run bounded, continuously or again for a day.

PySpark, Delta Lake and nothing of Dagster. The domains in `assets/` declare streams with the names
exported here; `platform_defs/` turns the declarations into Dagster definitions.
"""

from rivermark.admission.contract import Contract, Field, Rule
from rivermark.lake.table import Daily, Table
from rivermark.sources.files import FileSource
from rivermark.stream import AnyStream, Ingest, Output, Stream
from rivermark.topology import Topology

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
