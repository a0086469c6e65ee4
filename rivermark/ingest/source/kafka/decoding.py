"""Values of messages in Avro or Protobuf as JSON; in the driver and in Spark's workers.

An Avro schema has the defaults of its fields as JSON: bytes as a text of the same codes, times and
decimals as what they are written as, and of a record only the fields that differ. fastavro hands
them out like that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import msgspec
from fastavro._read_py import schemaless_reader as careful_reader

from rivermark.ingest.source.avro_values import OWN, READERS, is_endless, mark
from rivermark.ingest.source.kafka.formats import Avro, Format, KeyFormat, Protobuf
from rivermark.ingest.source.kafka.protobuf_values import message_class, of_protobuf
from rivermark.ingest.source.kafka.registry_header import UnreadableValue, without_header
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text

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


@dataclass(frozen=True)
class _Schema:
    """An Avro schema as its library has it.

    `endless`: a record may hold another one of its type, and that one another, without end.
    """

    parsed: Any
    endless: bool


def check_format(kind: Format | KeyFormat) -> None:
    """Raise RivermarkError where a file that the format names is missing or is not valid."""
    if isinstance(kind, Avro):
        if kind.schema:
            _avro_schema(Path(kind.schema))
        if kind.registry and not Path(kind.registry).is_dir():
            raise RivermarkError(f"the folder of Avro schemas {kind.registry} does not exist")
    elif isinstance(kind, Protobuf):
        message_class(kind.descriptor, kind.message)


def record_of(value: bytes, kind: Avro | Protobuf) -> tuple[dict[str, Any], str]:
    """A value as its members, and as the text of a JSON object.

    Raises:
        UnreadableValue: it is none of its format.
        RivermarkError: its schema is not in the registry.
    """
    record, text = value_of(value, kind)
    if not isinstance(record, dict):
        raise UnreadableValue("no Avro record of this schema: it has no fields")
    return record, text


def value_of(value: bytes, kind: Avro | Protobuf) -> tuple[Any, str]:
    """The same of a value that may be no record, such as a number; raises as `record_of` does."""
    if isinstance(kind, Protobuf):
        return of_protobuf(value, kind)
    expected = _avro_schema(Path(kind.schema), bool(kind.registry)) if kind.schema else None
    if kind.registry:
        number, value = without_header(value, kind.id_bytes)
        written = _registered(kind, number)
    else:
        assert expected is not None  # noqa: S101
        written = expected
    # The reader in C follows records within records until its stack ends, and the process with it.
    read = careful_reader if written.endless else fastavro.schemaless_reader
    content = BytesIO(value)
    try:
        record: Any = read(content, written.parsed, expected.parsed if expected else None)
        text = json_text(record)
    except Exception as error:
        raise UnreadableValue(f"no Avro record: {type(error).__name__} {error}") from error
    if content.read(1):
        raise UnreadableValue("no Avro record of this schema: bytes are left over")
    return record, text.decode()


def _registered(kind: Avro, number: int) -> _Schema:
    path = Path(f"{kind.registry}") / f"{number}.avsc"
    if not path.exists():
        # A schema that comes later than its messages is a mistake of a minute; they would be
        # quarantined for good.
        longer = "" if number else "; or write id_bytes=8, if their header has so many (Apicurio)"
        raise RivermarkError(
            f"messages name the Avro schema {number}, which folder {kind.registry} does not "
            f"hold: put it there as {path.name}{longer}"
        )
    return _avro_schema(path, kind.schema is not None)


@cache
def _avro_schema(path: Path, is_resolved: bool = False) -> _Schema:
    """A schema of a file; `is_resolved` where what one wrote is read as another has it."""
    try:
        parsed = fastavro.parse_schema(msgspec.json.decode(path.read_bytes()))
        schema = resolve_defaults(parsed)
    except Exception as error:
        raise RivermarkError(f"the Avro schema {path} cannot be read: {error}") from error
    endless = is_endless(schema)
    return _Schema(mark(schema, every=is_resolved), endless)
