"""Sinks of outputs, and the protocol of one's own."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rivermark.model.sink import BatchIdentity as BatchIdentity
    from rivermark.model.sink import Delivery as Delivery
    from rivermark.model.sink import Sink as Sink
    from rivermark.model.sink import SinkContext as SinkContext
    from rivermark.model.sink import SinkWriter as SinkWriter
    from rivermark.sinks.console import ConsoleSink as ConsoleSink
    from rivermark.sinks.delta_append import DeltaAppend as DeltaAppend
    from rivermark.sinks.delta_upsert import DeltaUpsert as DeltaUpsert
    from rivermark.sinks.files import FileSink as FileSink
    from rivermark.sinks.kafka import KafkaSink as KafkaSink
    from rivermark.sinks.postgres.declaration import PostgresAppend as PostgresAppend
    from rivermark.sinks.postgres.declaration import PostgresUpsert as PostgresUpsert
    from rivermark.sinks.real_time import RealTimeSink as RealTimeSink
    from rivermark.sinks.webhook import WebhookSink as WebhookSink

_PLACES: Final = {
    "BatchIdentity": "rivermark.model.sink",
    "ConsoleSink": "rivermark.sinks.console",
    "Delivery": "rivermark.model.sink",
    "DeltaAppend": "rivermark.sinks.delta_append",
    "DeltaUpsert": "rivermark.sinks.delta_upsert",
    "FileSink": "rivermark.sinks.files",
    "KafkaSink": "rivermark.sinks.kafka",
    "PostgresAppend": "rivermark.sinks.postgres.declaration",
    "PostgresUpsert": "rivermark.sinks.postgres.declaration",
    "RealTimeSink": "rivermark.sinks.real_time",
    "Sink": "rivermark.model.sink",
    "SinkContext": "rivermark.model.sink",
    "SinkWriter": "rivermark.model.sink",
    "WebhookSink": "rivermark.sinks.webhook",
}
"""The module of each name: those that run streams import one sink, and not the clients of all."""
__all__ = [*_PLACES]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return public
