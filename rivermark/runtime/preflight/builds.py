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
from rivermark.model.stream import Ingest, Output, Stream, table_of
from rivermark.model.table import Table
from rivermark.operators.reach import BuildReach, collecting
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.preflight.pitfalls import pitfalls
from rivermark.runtime.preflight.plan_tree import Expression, Operator, Plan
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.columns import column_faults
from rivermark.runtime.query.finality import check_margin
from rivermark.runtime.spark.append_mode import append_fault
from rivermark.runtime.spark.joins import check_watermarks, has_join
from rivermark.runtime.spark.watermarks import pushed_filters, with_watermark
from rivermark.sinks.output import sinks_of

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


def nullable_keys(stream: Stream, output: Output, built: DataFrame) -> Iterator[str]:
    """Columns of an output that a sink of it needs and a row may lack, a sentence each."""
    sinks = [sink for sink in sinks_of(output) if sink.needed(output.table)]
    if not sinks:
        return
    plan = Plan(built)
    made_by = {str(each.fields.get("name")): each for each in plan.output() or ()}
    optional, filled, outer = _optional(stream), _filled(plan), _outer(plan)
    for sink in sinks:
        for name in sink.needed(output.table):
            made = plan.behind(made_by[name]) if name in made_by else None
            if made is None or made.kind != "AttributeReference" or made.number in filled:
                continue
            if made.number in outer:
                why = "an outer join finds no row for some"
            elif made.fields["name"] in optional:
                why = f"the field '{made.fields['name']}' of its input is not required"
            else:
                continue
            yield (
                f"'{name}' is a key of {sink.target} and may be null, as {why}: such rows cannot "
                f'be merged there. Leave them out, .where("{name} IS NOT NULL"), or give them a '
                f"value, F.coalesce('{name}', F.lit(...))"
            )


def _optional(stream: Stream) -> set[str]:
    """Fields of the inputs that are required in none of them."""
    fields = [f for read in stream.reads if isinstance(read, Ingest) for f in read.contract.fields]
    required = {field.name for field in fields if field.required}
    # Of what other streams write it is not known.
    tables = [table_of(read) for read in stream.reads if not isinstance(read, Ingest)]
    others = {name for table in tables for name in table.schema.names}
    return {field.name for field in fields} - required - others


def _filled(plan: Plan) -> set[int | None]:
    """Attributes that a filter, or an inner join by them, leaves without nulls."""
    columns: set[int | None] = set()
    for operator in plan.top.walk():
        is_inner = operator.kind == "Join" and "Inner" in str(operator.fields["joinType"])
        for top in operator.expressions if operator.kind == "Filter" or is_inner else ():
            for each in top.walk():
                if each.kind in ("IsNotNull", "EqualTo", "GreaterThan", "LessThan"):
                    columns |= {plan.behind(part).number for part in each.parts}
    return columns


def _outer(plan: Plan) -> set[int | None]:
    """Attributes of the sides of outer joins that a row may lack."""
    columns: set[int | None] = set()
    for operator in plan.top.walk():
        if operator.kind != "Join":
            continue
        kind, (left, right) = str(operator.fields["joinType"]), operator.below
        lacking = [right] if "LeftOuter" in kind else [left] if "RightOuter" in kind else []
        for side in operator.below if "FullOuter" in kind else lacking:
            columns |= {each.number for each in _expressions(side)}
    return columns - {None}


def _expressions(operator: Operator) -> Iterator[Expression]:
    for below in operator.walk():
        for top in below.expressions:
            yield from top.walk()
