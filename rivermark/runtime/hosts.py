"""The right query host for a stream."""

from __future__ import annotations

from pyspark.sql import SparkSession

from rivermark.process.spark import ProcessBuild
from rivermark.runtime.appending import AppendHost
from rivermark.runtime.ingesting import IngestHost
from rivermark.runtime.processing import ProcessHost
from rivermark.runtime.query import QueryHost
from rivermark.runtime.refreshing import RefreshHost
from rivermark.settings import Settings
from rivermark.stream import AnyStream, Ingest


def host_for(spark: SparkSession, settings: Settings, stream: AnyStream, run_id: str) -> QueryHost:
    """Open the host of a stream; raises CheckpointIncompatible and TableSchemaMismatch."""
    if isinstance(stream, Ingest):
        return IngestHost(spark, settings, stream, run_id)
    if stream.kind == "refresh":
        return RefreshHost(spark, settings, stream, run_id)
    if isinstance(stream.build, ProcessBuild):
        return ProcessHost(spark, settings, stream, run_id)
    return AppendHost(spark, settings, stream, run_id)
