"""Source columns of a stream's columns, by Spark's analyzed plan."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from rivermark.lake.quoting import spark_quoted
from rivermark.model.stream import Stream, inputs_of
from rivermark.model.table import Table
from rivermark.runtime.query.build import apply_build

SOURCE: Final = "rivermark source: "
"""Begins the names that columns of the inputs have below the plan of a build; a plan that is
written as JSON has no metadata of columns, and a self-join gives one side other numbers."""

Node = Mapping[str, Any]
Column = tuple[str, str]
"""A table's name and that of a column of it."""


def column_lineage(spark: SparkSession, stream: Stream) -> dict[str, list[Column]]:
    """The columns of the inputs by each column that the stream's build returns, in their order.

    A column is left out where that is not known: a process function, as any Python function over
    rows, may compute it of all columns, and a literal is of none.

    Raises:
        DeclarationError: The build fails on empty tables.
    """
    inputs = [_empty(spark, table) for table in inputs_of(stream)]
    built = apply_build(stream.name, stream.build, *inputs)
    plan = _Plan()
    output = plan.visit(iter(json.loads(built._jdf.queryExecution().analyzed().toJSON())))
    sources = zip(built.columns, map(plan.sources, output), strict=True)
    return {name: sorted(columns) for name, columns in sources if columns}


def _empty(spark: SparkSession, table: Table) -> DataFrame:
    """The table without rows, as a selection of columns whose names say where they come from."""
    named = {f"{SOURCE}{table.name} {column.name}": column for column in table.schema}
    schema = StructType([StructField(name, c.dataType, c.nullable) for name, c in named.items()])
    columns = [F.col(spark_quoted(name)).alias(column.name) for name, column in named.items()]
    return spark.createDataFrame([], schema).select(columns)


@dataclass
class _Plan:
    """Attributes of a plan by their numbers: what each is computed from, and which are sources."""

    origins: dict[int, set[int]] = field(default_factory=dict)
    named: dict[int, Column] = field(default_factory=dict)

    def sources(self, attribute: int) -> set[Column]:
        """The columns of the inputs that an attribute is computed from."""
        columns: set[Column] = set()
        seen: set[int] = set()
        waiting = [attribute]
        while waiting:
            each = waiting.pop()
            if each in self.named:
                columns.add(self.named[each])
            elif each not in seen:
                seen.add(each)
                waiting += self.origins.get(each, ())
        return columns

    def visit(self, nodes: Iterator[Node]) -> list[int]:
        """Take a node and what is below it; returns the attributes that it outputs, in order."""
        node = next(nodes)
        children = [self.visit(nodes) for _ in range(node["num-children"])]
        below = [attribute for child in children for attribute in child]
        for expression in _expressions(node):
            self._define(expression)
        match node["class"].rpartition(".")[2]:
            case "Project":
                return _numbers(node["projectList"])
            case "Aggregate":
                return _numbers(node["aggregateExpressions"])
            case "Window":
                return [*below, *_numbers(node["windowExpressions"])]
            case "Union":
                for others in children[1:]:
                    for first, other in zip(children[0], others, strict=True):
                        self._add(first, [other])
                return children[0]
            case "Expand":
                output = _numbers(node["output"])
                for projection in node["projections"]:
                    for attribute, expression in zip(output, projection, strict=True):
                        self._add(attribute, _references(expression))
                return output
            case "Generate":
                made = _numbers(node["generatorOutput"])
                for attribute in made:
                    self._add(attribute, _references(node["generator"]))
                return [*below, *made]
            case "Join" if _kind(node["joinType"]) in ("LeftSemi", "LeftAnti"):
                return children[0]
            case _:
                return _numbers(node["output"]) if "output" in node else below

    def _define(self, expression: list[Node]) -> None:
        """Take an expression with a number: a source, or what it refers to."""
        top = expression[0]
        number = _number(top)
        if number is None:
            return
        if not _is_attribute(top):
            self._add(number, _references(expression[1:]))
        elif top["name"].startswith(SOURCE):
            table, _, column = top["name"].removeprefix(SOURCE).partition(" ")
            self.named[number] = (table, column)

    def _add(self, attribute: int, origins: list[int]) -> None:
        self.origins.setdefault(attribute, set()).update(origins)


def _expressions(node: Node) -> Iterator[list[Node]]:
    """The expressions that a node of a plan lists, each before what it consists of."""
    for name, value in node.items():
        if name != "projections" and isinstance(value, list):
            yield from (e for e in value if isinstance(e, list) and e and "class" in e[0])


def _numbers(expressions: list[list[Node]]) -> list[int]:
    """The attributes that named expressions define or pass on."""
    return [number for each in expressions if (number := _number(each[0])) is not None]


def _references(expression: list[Node]) -> list[int]:
    attributes = filter(_is_attribute, expression)
    return [number for each in attributes if (number := _number(each)) is not None]


def _is_attribute(expression: Node) -> bool:
    return bool(expression["class"].endswith(".AttributeReference"))


def _number(expression: Node) -> int | None:
    identity = expression.get("exprId")
    return None if identity is None else int(identity["id"])


def _kind(join: object) -> str:
    name = join.get("object", "") if isinstance(join, Mapping) else join
    return str(name).rstrip("$").rpartition(".")[2]
