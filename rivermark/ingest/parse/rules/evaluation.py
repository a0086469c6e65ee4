"""Conditions evaluated on a table: known functions here, the parts that are not known by Spark.

A part that is not known depends on few different values most of the time, such as the name of a
file: Spark is asked about each of them once. Where it depends on too many its rows are in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.rules.expression import ATTRIBUTE, LITERAL, Expression
from rivermark.ingest.parse.rules.functions import apply
from rivermark.ingest.parse.rules.literals import literal
from rivermark.ingest.parse.rules.moments import ZoneOf
from rivermark.ingest.parse.rules.parts import Ask, part_values
from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, type_of, vector_of

ROWS: Final = 16_384
"""Rows that are evaluated together."""


@dataclass(frozen=True)
class Outcome:
    """Where a condition is true, and where that is in doubt."""

    holds: Mask
    doubtful: Mask


class Evaluator:
    """Evaluates named conditions on tables of one schema."""

    def __init__(
        self,
        conditions: Mapping[str, Expression],
        schema: pa.Schema,
        type_in_spark: Callable[[Expression], str],
        zone_of: ZoneOf,
        ask: Ask,
    ) -> None:
        """Find out which parts of the conditions are not known, by evaluating them on no rows."""
        self._conditions = conditions
        self._schema = schema
        self._type_in_spark = type_in_spark
        self._zone_of = zone_of
        self._ask = ask
        self._parts: dict[Expression, Type] = {}
        self._raising: set[Expression] = set()
        self._settled: dict[Expression, Vector] = {}
        with np.errstate(all="ignore"):
            for condition in conditions.values():
                self._settle(condition)
        reached = self._reached(conditions.values())
        self._parts = {e: kind for e, kind in self._parts.items() if e in reached}

    def _settle(self, expression: Expression) -> Vector:
        """The expression on no rows; if that is not known, or not worth it, it is a part.

        Raises:
            Untranslatable: it is a part, with values that are not held here.
        """
        if expression not in self._settled:
            self._settled[expression] = self._of_no_rows(expression)
        return self._settled[expression]

    def _of_no_rows(self, expression: Expression) -> Vector:
        try:
            children = [self._settle(child) for child in expression.children]
            if not self._is_left_to_spark(expression):
                return self._evaluate(expression, children, self._schema.empty_table())
        except Untranslatable:
            pass
        self._parts[expression] = type_of(self._type_in_spark(expression))
        return _of_no_rows(self._parts[expression])

    def _is_left_to_spark(self, expression: Expression) -> bool:
        """Whether a part of it depends on the same texts: then Spark is asked about all of it."""
        parts = [child for child in expression.children if child in self._parts]
        return any(part.inputs == expression.inputs for part in parts) and all(
            pa.types.is_string(self._schema.field(name).type) for name in expression.inputs
        )

    def _reached(self, expressions: Iterable[Expression]) -> set[Expression]:
        """The expressions that are evaluated, here or as parts."""
        reached: set[Expression] = set()
        rest = [*expressions]
        while rest:
            expression = rest.pop()
            reached.add(expression)
            if expression not in self._parts:
                rest += expression.children
        return reached

    def evaluate(self, rows: pa.Table) -> dict[str, Outcome]:
        """Where each condition is true, and the rows of which Spark has to say it."""
        rows = rows.cast(self._schema)
        values = part_values(self._parts, rows, self._ask, self._raising)
        outcomes = {
            name: Outcome(*np.zeros((2, rows.num_rows), np.bool_)) for name in self._conditions
        }
        for first in range(0, rows.num_rows, ROWS):
            chunk = rows.slice(first, ROWS)
            span = slice(first, first + chunk.num_rows)
            known = {part: each.of(span) for part, each in values.items()}
            for name, condition in self._conditions.items():
                with np.errstate(all="ignore"):
                    value = self._value(condition, chunk, known)
                holds = value.values if value.valid is None else value.values & value.valid
                outcomes[name].holds[span] = holds
                if value.doubtful is not None:
                    outcomes[name].doubtful[span] = value.doubtful
        return outcomes

    def _value(
        self, expression: Expression, rows: pa.Table, known: dict[Expression, Vector]
    ) -> Vector:
        if expression not in known:
            if expression in self._parts:
                known[expression] = _in_doubt(self._parts[expression])
            else:
                children = [self._value(child, rows, known) for child in expression.children]
                known[expression] = self._evaluate(expression, children, rows)
        return known[expression]

    def _evaluate(
        self, expression: Expression, children: Sequence[Vector], rows: pa.Table
    ) -> Vector:
        details = expression.details
        if expression.function == LITERAL:
            return literal(details["dataType"], details["value"])
        if expression.function == ATTRIBUTE:
            type_of(details["dataType"])
            return vector_of(rows[details["name"]].combine_chunks())
        return apply(expression, children, self._zone_of)


def _of_no_rows(kind: Type) -> Vector:
    if kind.kind == "text":
        return Vector(kind, pa.array([], pa.string()))
    return Vector(kind, np.array([], kind.dtype))


def _in_doubt(kind: Type) -> Vector:
    values = pa.array([""]) if kind.kind == "text" else np.zeros(1, kind.dtype)
    return Vector(kind, values, None, np.ones(1, np.bool_))
