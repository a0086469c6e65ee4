"""The SQL that a condition may be: one expression over the columns of one row.

DuckDB parses and binds it; nothing here reads SQL. Refused is what looks beyond the row, such as
subqueries, aggregates and files, and what would say something else tomorrow, as the clock does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.quality.condition_engine import connection, registered

if TYPE_CHECKING:
    import duckdb

Node: TypeAlias = Mapping[str, Any]
"""A part of an expression, as DuckDB writes its tree."""

ALLOWED: Final = re.compile(
    "BETWEEN|CASE|CAST|COLLATE|COLUMN_REF|COMPARISON|CONJUNCTION|CONSTANT|FUNCTION|LAMBDA|OPERATOR"
    "|TYPE"
)
REFUSED: Final = {
    "SUBQUERY": "subquery: it looks at one row alone",
    "WINDOW": "window function: it looks at one row alone",
    "STAR": "`*`: name the columns",
    "PARAMETER": "parameter: write the value",
    "POSITIONAL_REFERENCE": "column by its number: name it",
}
ELSEWHERE: Final = re.compile(
    r"(?:current|get_current|has|inet|pg|txid)_\w+|ago|get_block_size|getenv|getvariable"
    r"|in_search_path|localtime(?:stamp)?|now|session_user|today|transaction_timestamp|user"
)
"""Functions that ask the clock, the session or the machine, beside those that DuckDB calls
volatile."""
ZONES: Final = {("timezone", 2): 0, ("make_timestamptz", 7): 6}
"""Where the time zone stands among so many arguments of a function."""
PROBE: Final = "x"
"""A text that is no number and no time: a condition that raises for it would end a stream."""


@lru_cache(maxsize=1024)
def columns_of(text: str, schema: pa.Schema) -> tuple[str, ...]:
    """The columns of a schema to which a condition refers.

    Raises:
        DeclarationError: It may not be evaluated: the reason and the place in the text.
    """
    used = tuple(_columns(text, tree_of(text, schema.names), schema.names))
    bare = f"(\n{text}\n)"
    if (kind := _type(text, schema, bare, bare)) not in ("BOOLEAN", '"NULL"'):
        raise DeclarationError(f"it is no condition: it is {kind}, and must be true or false")
    return used


def columns_of_value(text: str, schema: pa.Schema, bare: str, value: str) -> list[str]:
    """The same of an expression; `value` is the SQL of its value, `bare` the same without a TRY.

    Raises:
        DeclarationError: It may not be evaluated: the reason and the place in the text.
    """
    used = list(_columns(text, tree_of(text, schema.names), schema.names))
    _type(text, schema, bare, value)
    return used


@lru_cache(maxsize=1024)
def pattern_fault(pattern: str) -> str | None:
    """The reason why a text is no regular expression of RE2; None where it is one."""
    import duckdb as errors

    try:
        connection().execute("SELECT regexp_full_match('', ?)", [pattern]).fetchall()
    except errors.Error as error:
        return reason_of(error)
    return None


def tree_of(text: str, names: Sequence[str]) -> Node:
    """The expression over columns of these names that a condition is, as DuckDB parses it.

    Raises:
        DeclarationError: It is no expression, or more than one.
    """
    if not text.strip():
        raise DeclarationError("it is empty: write a condition such as fare < 0")
    sql = f"{BEFORE}{text}\n)"
    [(serialised,)] = connection().execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
    said = json.loads(serialised)
    if said["error"]:
        place = place_in(text, said.get("position"))
        raise DeclarationError(f"{said['error_message']}{place}{quotes_needed(text, names)}")
    [statement, *others] = said["statements"]
    node = statement["node"]
    clauses = node.get("modifiers") or node.get("where_clause") or node.get("group_expressions")
    bare = not clauses and node.get("from_table", {}).get("type") == "EMPTY"
    if others or not bare or len(node["select_list"]) != 1:
        raise DeclarationError("it is not one expression: write a condition such as fare < 0")
    tree: Node = node["select_list"][0]
    return tree


def nodes_of(
    node: Any, known: frozenset[str] = frozenset()
) -> Iterator[tuple[Node, frozenset[str]]]:
    """All parts of an expression, each with the names that the lambdas around it give."""
    if isinstance(node, list):
        for each in node:
            yield from nodes_of(each, known)
    elif isinstance(node, dict) and node.get("class") == "LAMBDA":
        named = {n["column_names"][0] for n, _ in nodes_of(node["lhs"]) if "column_names" in n}
        yield from nodes_of(node["expr"], known | named)
    elif isinstance(node, dict):
        if "class" in node:
            yield node, known
        for each in node.values():
            yield from nodes_of(each, known)


def _columns(text: str, tree: Node, names: list[str]) -> Iterator[str]:
    volatile, aggregates = _functions()
    by_case = {name.lower(): name for name in names}
    for node, known in nodes_of(tree):
        kind, place = node["class"], place_in(text, node.get("query_location"))
        if not ALLOWED.fullmatch(kind):
            what = REFUSED.get(kind, f"{kind.replace('_', ' ').lower()}")
            raise DeclarationError(f"a condition has no {what}{place}")
        if kind == "FUNCTION":
            name = node["function_name"].lower()
            if name in aggregates or name == "unnest":
                raise DeclarationError(f"'{name}' looks at several rows, a condition at one{place}")
            if name in volatile or _is_elsewhere(name, node):
                raise _not_repeatable(name, place)
            if (zone := ZONES.get((name, len(node["arguments"])))) is not None:
                _check_zone(node["arguments"][zone]["expression"], place)
        elif kind == "COLUMN_REF":
            name, *_ = node["column_names"]
            if name in known:
                continue
            if name.lower() in by_case:
                yield by_case[name.lower()]
            elif ELSEWHERE.fullmatch(name.lower()):
                raise _not_repeatable(name, place)
            else:
                near = did_you_mean(name, names) or f"; there are {', '.join(names)}"
                raise DeclarationError(f"there is no column '{name}'{place}{near}")


def _is_elsewhere(name: str, node: Node) -> bool:
    to_now = name == "age" and len(node["arguments"]) == 1
    return to_now or ELSEWHERE.fullmatch(name) is not None


def _not_repeatable(name: str, place: str) -> DeclarationError:
    return DeclarationError(
        f"'{name}' does not say the same of a row each time, and a condition must{place}"
    )


def _check_zone(zone: Node, place: str) -> None:
    # One that does not exist is the error that DuckDB's TRY does not catch.
    if zone["class"] != "CONSTANT":
        raise DeclarationError(f"a time zone is a text in quotes, such as 'Europe/Berlin'{place}")


def _type(text: str, schema: pa.Schema, bare: str, value: str) -> str:
    """The type of a value, which is tried on a row without values and on one with texts."""
    import duckdb as errors

    nothing = pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
    texts = [pa.array([PROBE if pa.types.is_string(f.type) else None], f.type) for f in schema]
    kind, advice = "", ""
    # Of a row without values only types and constants are at fault, which a TRY would hide.
    for sql, rows in ((bare, nothing), (value, pa.table(texts, schema=schema))):
        try:
            with registered(rows) as duck:
                tried = duck.execute(f"SELECT {sql} FROM rows")  # noqa: S608 - parsed before
                [(_, of_type, *_)] = tried.description or []
                kind = str(of_type)
                tried.fetchall()
        except errors.Error as error:
            raise DeclarationError(reason_of(error, text) + advice) from None
        advice = f"; the text '{PROBE}' was tried: write TRY(...) around what may fail"
    return kind


@cache
def _functions() -> tuple[frozenset[str], frozenset[str]]:
    """Functions that are volatile, and those that only aggregate."""
    rows = (
        connection()
        .execute(
            "SELECT function_name, bool_or(stability = 'VOLATILE'), "
            "bool_and(function_type = 'aggregate') FROM duckdb_functions() GROUP BY 1"
        )
        .fetchall()
    )
    volatile = frozenset(name for name, is_volatile, _ in rows if is_volatile)
    return volatile, frozenset(name for name, _, only in rows if only)


BEFORE: Final = "SELECT (\n"
"""What stands before a condition where DuckDB parses it."""


def reason_of(error: duckdb.Error, text: str = "") -> str:
    """The message of DuckDB in one line, with the place in the condition where it knows one."""
    _, _, rest = str(error).partition(": ")
    try:
        said = json.loads(rest)
    except json.JSONDecodeError:
        return str(error).splitlines()[0]
    message: str = said["exception_message"].splitlines()[0]
    message = message.split(" You might need to add explicit type casts")[0].rstrip(".!")
    if said.get("type") == "Scalar Function":
        message = f"there is no function '{said['name']}'"
    return message + place_in(text, said.get("position"))


def place_in(text: str, position: object) -> str:
    """The place in the text, in characters from 1; empty where DuckDB names none."""
    place = -1 if position is None else int(str(position)) - len(BEFORE)
    if not 0 <= place < len(text.encode()):
        return " (at its end)" if place > 0 else ""
    return f" (at character {len(text.encode()[:place].decode(errors='ignore')) + 1})"


def quotes_needed(text: str, names: Sequence[str]) -> str:
    """The spelling of a column whose name is a word of SQL."""
    words = set(re.findall(r'(?<!["\w])\w+(?!["\w])', text.lower()))
    meant = [name for name in names if name.lower() in words & _keywords()]
    return f'; {meant[0]} is a word of SQL: as a column it is written "{meant[0]}"' if meant else ""


@cache
def _keywords() -> frozenset[str]:
    sql = "SELECT keyword_name FROM duckdb_keywords()"
    return frozenset(name for (name,) in connection().execute(sql).fetchall())
