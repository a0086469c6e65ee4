"""Conditions as Spark has analysed them: trees of functions, read from the JSON of its plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ATTRIBUTE: Final = "AttributeReference"
LITERAL: Final = "Literal"
ALIAS: Final = "Alias"
IN_SET: Final = "InSet"

Place = tuple[int, ...]
Constants = Callable[[Place], Sequence[str | None]]
"""The constants of an `InSet` by its place, as texts; None for null."""


@dataclass(frozen=True, eq=False)
class Expression:
    """A function of Catalyst and its arguments; `details` are its parameters besides them.

    Equal expressions are one object, so that one evaluation serves all rules that share it, where
    their equality can be told.
    `inputs` are the columns that it refers to.
    """

    function: str
    children: tuple[Expression, ...]
    details: Mapping[str, Any]
    inputs: frozenset[str]


def expressions_of(plan: str, constants: Constants) -> dict[str, Expression]:
    """The named expressions of a projection, by its plan as JSON (`TreeNode.toJSON`).

    `constants` are asked for what the JSON leaves out of an `InSet`.
    """
    trees = _Trees(constants)
    named = {}
    for number, nodes in enumerate(json.loads(plan)[0]["projectList"]):
        flat = iter(nodes)
        first = next(flat)
        node = next(flat) if _name(first) == ALIAS else first
        named[first["name"]] = trees.of(node, flat, (number,))
    return named


def places_in(conditions: Sequence[Expression]) -> dict[Expression, Place]:
    """Where each expression stands: the number of its condition, then which child of which."""
    places: dict[Expression, Place] = {}
    rest: list[tuple[Expression, Place]] = [(c, (n,)) for n, c in enumerate(conditions)]
    while rest:
        expression, place = rest.pop()
        if expression not in places:
            places[expression] = place
            rest += [(child, (*place, n)) for n, child in enumerate(expression.children)]
    return places


class _Trees:
    """Builds trees of nodes that are written one behind the other, each before its children."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._known: dict[str, Expression] = {}

    def of(self, node: dict[str, Any], flat: Iterator[Any], place: Place) -> Expression:
        """The tree of a node, whose children follow it."""
        name = _name(node)
        numbers = range(node["num-children"])
        children = tuple(self.of(next(flat), flat, (*place, n)) for n in numbers)
        details = {k: v for k, v in node.items() if k not in ("class", "num-children")}
        if name == ATTRIBUTE:
            details = {"name": node["name"], "dataType": node["dataType"]}
            inputs = frozenset({node["name"]})
        else:
            inputs = frozenset().union(*(child.inputs for child in children))
        if name == IN_SET:
            details = {"constants": [*self._constants(place)]}
        expression = Expression(name, children, details, inputs)
        if None in details.values() or not isinstance(details.get("dataType", ""), str):
            # JSON has nothing for some parameters, such as the escape of Like, and does not say
            # where an item of an array ends: expressions that differ look alike.
            return expression
        key = json.dumps([name, details, [id(child) for child in children]], sort_keys=True)
        return self._known.setdefault(key, expression)


def _name(node: Mapping[str, Any]) -> str:
    name: str = node["class"]
    return name.removeprefix("org.apache.spark.sql.catalyst.expressions.")
