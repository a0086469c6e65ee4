"""The right query host for a stream."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from rivermark.model.sink import owned
from rivermark.model.stream import AnyStream, Ingest
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.query.append import AppendHost
from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.ingest import IngestHost
from rivermark.runtime.query.process import ProcessHost
from rivermark.runtime.query.real_time import RealTimeHost
from rivermark.runtime.query.refresh import RefreshHost
from rivermark.settings import Settings
from rivermark.sinks.real_time import real_time_of


def host_for(
    spark: SparkSession,
    settings: Settings,
    stream: AnyStream,
    run_id: str,
    check: Callable[[], None] = owned,
) -> QueryHost:
    """Open the host of a stream; `check` is that of its lease, called before each commit.

    Raises CheckpointIncompatible and TableSchemaMismatch.
    """
    if isinstance(stream, Ingest):
        return IngestHost(spark, settings, stream, run_id, check)
    if stream.kind == "refresh":
        return RefreshHost(spark, settings, stream, run_id, check)
    if isinstance(stream.build, ProcessBuild):
        return ProcessHost(spark, settings, stream, run_id, check)
    if (real_time := real_time_of(stream)) is not None:
        return RealTimeHost(spark, settings, stream, run_id, check, real_time=real_time)
    return AppendHost(spark, settings, stream, run_id, check)
