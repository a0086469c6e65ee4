"""The streaming platform: streams as values, run bounded, continuously or again for a day.

A project declares streams with the names exported here, and `rivermark.dagster`, the only room
that knows Dagster, turns the declarations into Dagster definitions.

The names are loaded when they are first used, so that a part that needs no Spark, such as
`rivermark.process`, is imported without it.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rivermark.ask.lake_table import table
    from rivermark.ingest.source.delta_table import DeltaSource
    from rivermark.ingest.source.files.source import FileSource
    from rivermark.ingest.source.generator import ElementsSource, RateSource, SocketSource
    from rivermark.ingest.source.kafka.formats import Avro, Protobuf
    from rivermark.ingest.source.kafka.options import ConsumerGroup
    from rivermark.ingest.source.kafka.source import KafkaSource
    from rivermark.ingest.source.postgres import PostgresSource
    from rivermark.ingest.source.python_data_source import PythonDataSource
    from rivermark.model import expectations as expect
    from rivermark.model import field_readers as readers
    from rivermark.model.column_type import ColumnType
    from rivermark.model.contract import Contract, Field, Rule
    from rivermark.model.ddl import struct_type as columns
    from rivermark.model.domain import Domain
    from rivermark.model.errors import DeclarationError, RivermarkError
    from rivermark.model.ingest import Ingest
    from rivermark.model.plot import Marks, Plot
    from rivermark.model.restart_strategy import FixedDelay, GrowingDelay, NoRestart
    from rivermark.model.rule import Expectation
    from rivermark.model.sink import BatchIdentity, Delivery, Sink, SinkContext, SinkWriter
    from rivermark.model.source import Source, SourceReader
    from rivermark.model.stream import AnyStream, Output, Stream
    from rivermark.model.suite import Suite
    from rivermark.model.table import Daily, Table
    from rivermark.model.topology import Topology
    from rivermark.model.watermark import PerProducer
    from rivermark.sinks.console import ConsoleSink
    from rivermark.sinks.delta_append import DeltaAppend
    from rivermark.sinks.delta_upsert import DeltaUpsert
    from rivermark.sinks.files import FileSink
    from rivermark.sinks.kafka import KafkaSink
    from rivermark.sinks.postgres.declaration import PostgresAppend, PostgresUpsert
    from rivermark.sinks.real_time import RealTimeSink
    from rivermark.sinks.webhook import WebhookSink

__all__ = [
    "AnyStream",
    "Avro",
    "BatchIdentity",
    "ColumnType",
    "ConsoleSink",
    "ConsumerGroup",
    "Contract",
    "Daily",
    "DeclarationError",
    "Delivery",
    "DeltaAppend",
    "DeltaSource",
    "DeltaUpsert",
    "Domain",
    "ElementsSource",
    "Expectation",
    "Field",
    "FileSink",
    "FileSource",
    "FixedDelay",
    "GrowingDelay",
    "Ingest",
    "KafkaSink",
    "KafkaSource",
    "Marks",
    "NoRestart",
    "Output",
    "PerProducer",
    "Plot",
    "PostgresAppend",
    "PostgresSource",
    "PostgresUpsert",
    "Protobuf",
    "PythonDataSource",
    "RateSource",
    "RealTimeSink",
    "RivermarkError",
    "Rule",
    "Sink",
    "SinkContext",
    "SinkWriter",
    "SocketSource",
    "Source",
    "SourceReader",
    "Stream",
    "Suite",
    "Table",
    "Topology",
    "WebhookSink",
    "columns",
    "expect",
    "readers",
    "table",
]

_MODULES: Final = {
    "AnyStream": "model.stream",
    "Avro": "ingest.source.kafka.formats",
    "BatchIdentity": "model.sink",
    "ColumnType": "model.column_type",
    "ConsoleSink": "sinks.console",
    "ConsumerGroup": "ingest.source.kafka.options",
    "Contract": "model.contract",
    "Daily": "model.table",
    "DeclarationError": "model.errors",
    "Delivery": "model.sink",
    "DeltaAppend": "sinks.delta_append",
    "DeltaSource": "ingest.source.delta_table",
    "DeltaUpsert": "sinks.delta_upsert",
    "Domain": "model.domain",
    "ElementsSource": "ingest.source.generator",
    "Expectation": "model.rule",
    "Field": "model.contract",
    "FileSink": "sinks.files",
    "FileSource": "ingest.source.files.source",
    "FixedDelay": "model.restart_strategy",
    "GrowingDelay": "model.restart_strategy",
    "Ingest": "model.ingest",
    "KafkaSink": "sinks.kafka",
    "KafkaSource": "ingest.source.kafka.source",
    "Marks": "model.plot",
    "NoRestart": "model.restart_strategy",
    "Output": "model.stream",
    "PerProducer": "model.watermark",
    "Plot": "model.plot",
    "Protobuf": "ingest.source.kafka.formats",
    "PostgresAppend": "sinks.postgres.declaration",
    "PostgresSource": "ingest.source.postgres",
    "PostgresUpsert": "sinks.postgres.declaration",
    "PythonDataSource": "ingest.source.python_data_source",
    "RateSource": "ingest.source.generator",
    "RealTimeSink": "sinks.real_time",
    "RivermarkError": "model.errors",
    "Rule": "model.contract",
    "Sink": "model.sink",
    "SinkContext": "model.sink",
    "SinkWriter": "model.sink",
    "SocketSource": "ingest.source.generator",
    "Source": "model.source",
    "SourceReader": "model.source",
    "Stream": "model.stream",
    "Suite": "model.suite",
    "Table": "model.table",
    "Topology": "model.topology",
    "WebhookSink": "sinks.webhook",
}
"""The module of `rivermark` that holds each name."""

_RENAMED: Final = {
    "columns": "rivermark.model.ddl:struct_type",
    "expect": "rivermark.model.expectations",
    "readers": "rivermark.model.field_readers",
    "table": "rivermark.ask.lake_table:table",
}
"""Functions, and whole modules that are public under another name."""


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        public = resolve_name(_RENAMED[name])
    elif name in _MODULES:
        public = resolve_name(f"rivermark.{_MODULES[name]}:{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = public
    return public
