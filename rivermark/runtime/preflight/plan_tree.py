"""Spark's analyzed plan of a build as a tree that Python can walk: operators and expressions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Expression:
    """An expression: its class, its fields, what it consists of.

    `address` are its place among the plan's operators, among the expressions of its operator and
    within its expression.
    """

    kind: str
    fields: Node
    parts: tuple[Expression, ...]
    address: tuple[int, int, int]

    def walk(self) -> Iterator[Expression]:
        """It and all that it consists of."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def number(self) -> int | None:
        """The number by which other expressions refer to it, of an attribute or alias."""
        identity = self.fields.get("exprId")
        return None if identity is None else int(identity["id"])

    @property
    def type(self) -> Any:
        """Its type as JSON, of those that say it: attributes, literals, casts."""
        return self.fields.get("dataType")


@dataclass(frozen=True)
class Operator:
    """An operator of a plan: its class, its fields, its expressions, what is below it."""

    kind: str
    fields: Node
    expressions: tuple[Expression, ...]
    below: tuple[Operator, ...]

    def walk(self) -> Iterator[Operator]:
        """It and all below it."""
        yield self
        for each in self.below:
            yield from each.walk()


class Plan:
    """The analyzed plan of a DataFrame."""

    def __init__(self, built: DataFrame) -> None:
        self._plan: Any = built._jdf.queryExecution().analyzed()
        nodes = enumerate(json.loads(self._plan.toJSON()))
        self.top = _operator(nodes)
        self.aliases = {
            each.number: each.parts[0]
            for each in self.expressions()
            if each.kind == "Alias" and each.number is not None
        }
        """What each alias stands for, by its number."""

    def expressions(self) -> Iterator[Expression]:
        """All expressions of all operators."""
        for operator in self.top.walk():
            for top in operator.expressions:
                yield from top.walk()

    def behind(self, expression: Expression) -> Expression:
        """The expression behind an attribute, where the plan computes it."""
        while expression.kind in ("AttributeReference", "Alias"):
            made = self.aliases.get(expression.number or -1)
            if made is None or made.number == expression.number:
                return expression
            expression = made
        return expression

    def of_jvm(self, expression: Expression) -> Any:
        """Spark's own object, for what the JSON does not say; None where it is not own."""
        operator, place, within = expression.address
        try:
            own = self._plan.apply(operator).expressions().apply(place).apply(within)
            is_it = str(own.getClass().getName()).rpartition(".")[2] == expression.kind
        except Py4JError:
            return None
        return own if is_it else None

    def output(self, operator: Operator | None = None) -> list[Expression] | None:
        """The columns that an operator gives, the topmost by default, where they are told."""
        operator = operator or self.top
        match operator.kind:
            case "Project" | "Aggregate":
                names = "projectList" if operator.kind == "Project" else "aggregateExpressions"
                count = len(operator.fields[names])
                return [*operator.expressions[-count:]] if count else []
            case "Filter" | "EventTimeWatermark" | "SubqueryAlias" | "Sort" | "Deduplicate":
                return self.output(operator.below[0])
            case _ if "output" in operator.fields:
                return [*operator.expressions]
        return None


def _operator(nodes: Iterator[tuple[int, Node]]) -> Operator:
    index, node = next(nodes)
    flat = [each for value in node.values() for each in _lists(value)]
    tops = tuple(
        _expression(iter(enumerate(each)), index, place) for place, each in enumerate(flat)
    )
    below = tuple(_operator(nodes) for _ in range(node["num-children"]))
    return Operator(_short(node), node, tops, below)


def _lists(value: Any) -> Iterator[list[Node]]:
    """The expressions in a field of an operator, each as the list that it is written as."""
    if not isinstance(value, list) or not value:
        return
    if isinstance(value[0], Mapping) and "class" in value[0]:
        yield value
    else:
        for each in value:
            yield from _lists(each)


def _expression(nodes: Iterator[tuple[int, Node]], operator: int, place: int) -> Expression:
    within, node = next(nodes)
    parts = tuple(_expression(nodes, operator, place) for _ in range(node["num-children"]))
    return Expression(_short(node), node, parts, (operator, place, within))


def _short(node: Node) -> str:
    return str(node["class"]).rpartition(".")[2]
