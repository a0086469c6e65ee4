"""Conditions as Spark has analysed them: trees of functions, read from the JSON of its plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

ATTRIBUTE: Final = "AttributeReference"
LITERAL: Final = "Literal"
ALIAS: Final = "Alias"

Place = tuple[int, ...]


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


def expressions_of(plan: str) -> dict[str, Expression]:
    """The named expressions of a projection, by its plan as JSON (`TreeNode.toJSON`)."""
    known: dict[str, Expression] = {}
    named = {}
    for nodes in json.loads(plan)[0]["projectList"]:
        flat = iter(nodes)
        first = next(flat)
        if _name(first) == ALIAS:
            named[first["name"]] = _tree(next(flat), flat, known)
        else:
            named[first["name"]] = _tree(first, flat, known)
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


def _tree(node: dict[str, Any], flat: Iterator[Any], known: dict[str, Expression]) -> Expression:
    """The tree of a node, whose children follow it."""
    name = _name(node)
    children = tuple(_tree(next(flat), flat, known) for _ in range(node["num-children"]))
    details = {k: v for k, v in node.items() if k not in ("class", "num-children")}
    if name == ATTRIBUTE:
        details = {"name": node["name"], "dataType": node["dataType"]}
        inputs = frozenset({node["name"]})
    else:
        inputs = frozenset().union(*(child.inputs for child in children))
    expression = Expression(name, children, details, inputs)
    if None in details.values() or not isinstance(details.get("dataType", ""), str):
        # JSON has nothing for some parameters, such as the values of InSet and the escape of Like,
        # and does not say where an item of an array ends: expressions that differ look alike.
        return expression
    key = json.dumps([name, details, [id(child) for child in children]], sort_keys=True)
    return known.setdefault(key, expression)


def _name(node: Mapping[str, Any]) -> str:
    name: str = node["class"]
    return name.removeprefix("org.apache.spark.sql.catalyst.expressions.")
