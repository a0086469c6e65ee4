"""Keys of upserts that may be null: rows that such a sink cannot merge."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from rivermark.model.stream import Ingest, Output, Stream, table_of
from rivermark.runtime.preflight.plan_tree import Expression, Operator, Plan
from rivermark.sinks.output import sinks_of


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
