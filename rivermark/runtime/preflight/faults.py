"""Every fault of a stream's declaration, as errors that are collected and not raised."""

from __future__ import annotations

from collections.abc import Iterator

from rivermark.ingest.parse.contract_parser import contract_faults
from rivermark.ingest.parse.expressions import expression_faults
from rivermark.model.errors import DeclarationError
from rivermark.model.stream import AnyStream, Ingest
from rivermark.runtime.preflight.builds import EmptyInputs, build_faults
from rivermark.runtime.preflight.margins import timer_faults
from rivermark.runtime.preflight.suites import suite_faults

Faults = Iterator[DeclarationError]


def faults_without_spark(stream: AnyStream) -> Faults:
    """Faults of a stream's suites, its rules and readers in SQL, and its margin."""
    yield from suite_faults(stream)
    if isinstance(stream, Ingest):
        yield from contract_faults(stream.name, stream.contract)
    else:
        yield from timer_faults(stream)


def faults_of(stream: AnyStream, inputs: EmptyInputs) -> Faults:
    """Faults that Spark finds in a stream's expressions and build, on empty tables."""
    if isinstance(stream, Ingest):
        yield from expression_faults(inputs.spark, stream.name, stream.contract)
    else:
        yield from build_faults(stream, inputs)
