"""A stream's build on empty inputs: whether it can be planned, and makes what the tables hold."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rivermark.ingest.parse.expressions import CONDITION, DAY, expression_fault
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.place import Place
from rivermark.model.stream import Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.operators.reach import BuildReach, collecting
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.preflight.nullable_keys import nullable_keys
from rivermark.runtime.preflight.pitfalls import pitfalls
from rivermark.runtime.query.append import with_watermark
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.columns import column_faults
from rivermark.runtime.query.finality import check_margin
from rivermark.runtime.spark.append_mode import append_fault
from rivermark.runtime.spark.join_state_check import check_watermarks, has_join
from rivermark.runtime.spark.pushed_filters import pushed_filters

HELD: Final = (
    "its filter {condition} holds the results back: Spark moves it below the watermark, which then "
    "waits for the next row that passes, forever where none comes; write "
    ".transform(keep(condition, event_time=...)), from rivermark.operators, in place of the filter"
)


@dataclass
class EmptyInputs:
    """Tables without rows, as streams and whole; `folder` is an empty one."""

    spark: SparkSession
    folder: Path

    def of(self, stream: Stream) -> list[DataFrame]:
        """The arguments of a stream's build."""
        by_stream = stream.kind == "append" and not isinstance(stream.build, ProcessBuild)
        reads = map(table_of, stream.reads)
        frames = [self._read(stream, t) if by_stream else self.whole(t.schema) for t in reads]
        return [*frames, *(self.whole(table_of(each).schema) for each in stream.static)]

    def _read(self, stream: Stream, table: Table) -> DataFrame:
        rows = self.spark.readStream.schema(table.schema).parquet(str(self.folder))
        return with_watermark(stream, table, rows)

    def whole(self, schema: StructType) -> DataFrame:
        """A table with these columns."""
        return self.spark.createDataFrame([], schema)


def build_faults(stream: Stream, inputs: EmptyInputs) -> Iterator[DeclarationError]:
    """Faults of a stream's build and of the rows that it makes."""
    yield from _touches_faults(stream, inputs)
    try:
        frames = inputs.of(stream)
        with collecting(BuildReach()) as reach:
            built = apply_build(stream.name, stream.build, *frames)
        if built.isStreaming and has_join(built):
            check_watermarks(built, stream.name)
    except DeclarationError as error:
        yield error.at(place_of_build(stream))
        return
    if not isinstance(stream.build, ProcessBuild):
        keys = (what for o in stream.outputs for what in nullable_keys(stream, o, built))
        # A filter that raises is no filter to keep: one fault gets one sentence, the next the next.
        raising = tuple(pitfalls(built))
        pushed = () if raising else pushed_filters(built)
        for what in (*raising, *keys, *(HELD.format(condition=each) for each in pushed)):
            in_build = DeclarationError(f"stream '{stream.name}', in its build: {what}")
            yield in_build.at(place_of_build(stream))
    for output in stream.outputs:
        yield from (f.at(place_of_build(stream)) for f in _output_faults(stream, output, built))
    if built.isStreaming and (fault := append_fault(inputs.spark, stream, built)):
        yield DeclarationError(f"stream '{stream.name}': {fault}").at(place_of_build(stream))
    try:
        check_margin(stream, reach)
    except DeclarationError as error:
        yield error.at(place_of(stream))


def _touches_faults(stream: Stream, inputs: EmptyInputs) -> Iterator[DeclarationError]:
    if stream.touches is not None:
        rows = inputs.whole(table_of(stream.reads[0]).schema)
        what = f"stream '{stream.name}': `touches`"
        if wrong := expression_fault(rows, what, stream.touches, place_of(stream), DAY):
            yield wrong


def _output_faults(stream: Stream, output: Output, built: DataFrame) -> Iterator[DeclarationError]:
    if output.where is not None:
        what = f"stream '{stream.name}': the condition of table '{output.table.name}'"
        if wrong := expression_fault(built, what, output.where, place_of(output), CONDITION):
            yield wrong
    yield from column_faults(stream.name, output.table, built.schema, exact=True)


def place_of_build(stream: Stream) -> Place | None:
    """The place of the function that builds, or of its stream's declaration."""
    code = getattr(inspect.unwrap(getattr(stream.build, "func", stream.build)), "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code else place_of(stream)
