"""Default values of Avro fields as what a reader returns.

A schema has them as JSON: bytes as a text of the same codes, times and decimals as what they are
written as, and of a record only the fields that differ. fastavro hands them out like that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rivermark.ingest.source.avro_values import OWN, READERS

PLAIN: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "string", "bytes"))


def resolve_defaults(schema: Any) -> Any:
    """The parsed schema, changed in place: each default is a value as one that is read."""
    named: dict[str, Any] = {}
    _note(schema, named)
    for record in named.values():
        for field in record.get("fields", ()):
            if "default" in field:
                field["default"] = _value(field["type"], field["default"], named)
    return schema


def _note(schema: Any, named: dict[str, Any]) -> None:
    """Remember the types that have a name, inner ones first: their defaults are part of outer."""
    if isinstance(schema, list):
        for each in schema:
            _note(each, named)
    elif isinstance(schema, dict):
        parts = [schema[part] for part in ("items", "values") if part in schema]
        for part in (*parts, *(field["type"] for field in schema.get("fields", ()))):
            _note(part, named)
        if "name" in schema:
            named[schema["name"]] = schema


def _value(kind: Any, default: Any, named: Mapping[str, Any]) -> Any:
    """A default as the value of a type; of a union it is one of the first branch that it fits."""
    if isinstance(kind, list):
        fitting = [each for each in kind if _fits(each, default, named)]
        return _value(fitting[0], default, named) if fitting else default
    if isinstance(kind, str) and kind not in PLAIN:
        kind = named[kind]
    schema = kind if isinstance(kind, dict) else {"type": kind}
    match schema["type"]:
        case "bytes" | "fixed":
            value: Any = default.encode("latin-1") if isinstance(default, str) else default
        case "array":
            value = [_value(schema["items"], each, named) for each in default]
        case "map":
            value = {key: _value(schema["values"], each, named) for key, each in default.items()}
        case "record" | "error":
            value = {
                field["name"]: _value(field["type"], default[field["name"]], named)
                if field["name"] in default
                else field.get("default")
                for field in schema["fields"]
            }
        case _:
            value = default
    read = READERS.get(f"{schema['type']}-{OWN}{schema.get('logicalType')}")
    return value if read is None else read(value, schema)


def _fits(kind: Any, default: Any, named: Mapping[str, Any]) -> bool:
    if isinstance(kind, str) and kind not in PLAIN:
        kind = named[kind]
    name = kind["type"] if isinstance(kind, dict) else kind
    match name:
        case "null":
            return default is None
        case "boolean":
            return isinstance(default, bool)
        case "int" | "long" | "float" | "double":
            return isinstance(default, int | float) and not isinstance(default, bool)
        case "string" | "bytes" | "fixed" | "enum":
            return isinstance(default, str)
        case "array":
            return isinstance(default, list)
    return isinstance(default, dict)
