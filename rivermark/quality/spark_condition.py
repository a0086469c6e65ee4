"""A condition as SQL of Spark: for streams in real time, and for suites of Great Expectations.

Written from DuckDB's tree of it, for the part of SQL that both read alike; the rest is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final, NamedTuple

import pyarrow as pa

from rivermark.lake.quoting import spark_quoted, spark_quoted_text
from rivermark.model.errors import DeclarationError
from rivermark.quality.condition_engine import connection
from rivermark.quality.condition_text import Node, tree_of

COMPARISONS: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
SPANS: Final = {
    "to_days": "DAY",
    "to_hours": "HOUR",
    "to_minutes": "MINUTE",
    "to_seconds": "SECOND",
}
SAME_KIND: Final = ("least", "greatest")
COMPUTED: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
"""Null where they overflow, instead of an end of the query."""


class _Piece(NamedTuple):
    sql: str
    kind: str


class _Refused(Exception):
    """A part of a condition that is not written for Spark."""


def spark_condition(text: str, schema: pa.Schema) -> str:
    """The condition over columns of a schema in SQL of Spark.

    Raises:
        DeclarationError: It has a part that is not evaluated in real time.
    """
    columns = {field.name.lower(): field for field in schema}
    try:
        return _Writer(columns).piece(tree_of(text, schema.names)).sql
    except _Refused as refused:
        raise DeclarationError(
            f"Spark has no equal for a {refused}: a condition in real time, or for Great "
            "Expectations, has comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, CASE, coalesce, "
            "abs, least, greatest, len, + - * and /"
        ) from None


class _Writer:
    def __init__(self, columns: Mapping[str, pa.Field]) -> None:
        self._columns = columns

    def piece(self, node: Node) -> _Piece:
        match node["class"]:
            case "COLUMN_REF" if len(node["column_names"]) == 1:
                field = self._columns[node["column_names"][0].lower()]
                return _Piece(spark_quoted(field.name), _kind(field.type))
            case "CONSTANT":
                return _constant(node)
            case "COMPARISON":
                a, b = self._alike(node["left"], node["right"])
                return _Piece(f"({a.sql} {COMPARISONS[node['type']]} {b.sql})", "boolean")
            case "BETWEEN":
                parts = self._alike(node["input"], node["lower"], node["upper"])
                value, low, high = (part.sql for part in parts)
                return _Piece(f"({value} BETWEEN {low} AND {high})", "boolean")
            case "CONJUNCTION":
                word = f" {node['type'].removeprefix('CONJUNCTION_')} "
                parts = [self._as(each, "boolean") for each in node["children"]]
                return _Piece(f"({word.join(part.sql for part in parts)})", "boolean")
            case "CASE":
                return self._case(node)
            case "OPERATOR":
                return self._operator(node)
            case "CAST" if node["child"]["class"] == "CONSTANT" and not node["try_cast"]:
                return _cast(node["child"]["literal"]["text"], node["type_expr"]["type_name"])
            case "FUNCTION":
                arguments = [argument["expression"] for argument in node["arguments"]]
                return self._function(node["function_name"], arguments)
        raise _Refused(node["class"].lower())

    def _operator(self, node: Node) -> _Piece:
        children, kind = node["children"], node["type"]
        if kind == "OPERATOR_NOT":
            return _Piece(f"(NOT {self._as(children[0], 'boolean').sql})", "boolean")
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            word = kind.removeprefix("OPERATOR_").replace("_", " ")
            return _Piece(f"({self.piece(children[0]).sql} {word})", "boolean")
        if kind == "COMPARE_IN":
            probe, *items = self._alike(*children)
            return _Piece(f"({probe.sql} IN ({', '.join(i.sql for i in items)}))", "boolean")
        if kind == "OPERATOR_COALESCE":
            parts = self._alike(*children)
            return _Piece(f"coalesce({', '.join(p.sql for p in parts)})", _common(parts))
        raise _Refused(kind.removeprefix("OPERATOR_"))

    def _case(self, node: Node) -> _Piece:
        results = [check["then_expr"] for check in node["case_checks"]]
        *values, otherwise = self._alike(*results, node["else_expr"])
        conditions = [self._as(c["when_expr"], "boolean").sql for c in node["case_checks"]]
        whens = " ".join(
            f"WHEN {condition} THEN {value.sql}"
            for condition, value in zip(conditions, values, strict=True)
        )
        return _Piece(f"(CASE {whens} ELSE {otherwise.sql} END)", _common([*values, otherwise]))

    def _function(self, name: str, arguments: list[Node]) -> _Piece:
        if name in SPANS:
            number = _number_of(arguments[0])
            return _Piece(f"INTERVAL '{number}' {SPANS[name]}", "span")
        if name in SAME_KIND and len(arguments) > 1:
            parts = self._alike(*arguments)
            return _Piece(f"{name}({', '.join(p.sql for p in parts)})", _common(parts))
        if name == "abs" and self.piece(arguments[0]).kind == "number":
            return _Piece(f"abs({self.piece(arguments[0]).sql})", "number")
        if name == "len" and self.piece(arguments[0]).kind == "list":
            items = self.piece(arguments[0]).sql
            return _Piece(f"(CASE WHEN {items} IS NOT NULL THEN size({items}) END)", "number")
        if name in (*COMPUTED, "/") and len(arguments) == 2:
            a, b = map(self.piece, arguments)
            if a.kind == b.kind == "number":
                if name == "/":
                    a, b = (_Piece(f"CAST({p.sql} AS DOUBLE)", "number") for p in (a, b))
                    return _Piece(f"try_divide({a.sql}, {b.sql})", "number")
                return _Piece(f"{COMPUTED[name]}({a.sql}, {b.sql})", "number")
            if (a.kind, b.kind) == ("time", "span"):
                return _Piece(f"({a.sql} {name} {b.sql})", "time")
            if name == "-" and a.kind == b.kind == "time":
                return _Piece(f"({a.sql} - {b.sql})", "span")
        raise _Refused(f"'{name}' of these")

    def _as(self, node: Node, kind: str) -> _Piece:
        piece = self.piece(node)
        if piece.kind not in (kind, "null"):
            raise _Refused(f"{piece.kind} for a {kind}")
        return piece

    def _alike(self, *nodes: Node) -> list[_Piece]:
        pieces = [self.piece(node) for node in nodes]
        _common(pieces)
        return pieces


def _common(pieces: list[_Piece]) -> str:
    kinds = {piece.kind for piece in pieces} - {"null"}
    if len(kinds) > 1:
        raise _Refused(f"comparison of {' and '.join(sorted(kinds))}")
    return kinds.pop() if kinds else "null"


def _kind(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind) and kind.tz is not None:
        return "time"
    if types.is_string(kind):
        return "text"
    if types.is_list(kind) or types.is_large_list(kind):
        return "list"
    for name in ("date", "boolean"):
        if getattr(types, f"is_{name}")(kind):
            return name
    raise _Refused(f"column of type {kind}")


def _constant(node: Node) -> _Piece:
    text = node["literal"]["text"]
    match node["literal"]["kind"]:
        case "BOOLEAN":
            return _Piece(text, "boolean")
        case "NULL_LITERAL":
            return _Piece("NULL", "null")
        case "STRING":
            return _Piece(spark_quoted_text(text), "text")
    return _Piece(text, "number")


def _cast(text: str, kind: str) -> _Piece:
    if kind.upper() == "DATE":
        return _Piece(f"DATE '{date.fromisoformat(text)}'", "date")
    if kind.upper() in ("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"):
        sql = "SELECT epoch_us(CAST(? AS TIMESTAMP WITH TIME ZONE))"
        [(micros,)] = connection().execute(sql, [text]).fetchall()
        return _Piece(f"timestamp_micros({int(micros)})", "time")
    raise _Refused(f"constant of type {kind}")


def _number_of(node: Node) -> int:
    """The whole number of an INTERVAL, which DuckDB wraps in casts."""
    while node["class"] in ("CAST", "FUNCTION"):
        node = node["child"] if node["class"] == "CAST" else node["arguments"][0]["expression"]
    text = node.get("literal", {}).get("text", "")
    if not text.lstrip("-").isdigit():
        raise _Refused("INTERVAL of a fraction")
    return int(text)
