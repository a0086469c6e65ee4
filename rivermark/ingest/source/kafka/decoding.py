"""Values of messages in Avro or Protobuf as JSON; in the driver and in Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import msgspec
from fastavro._read_py import schemaless_reader as careful_reader

from rivermark.ingest.source.avro_defaults import resolve_defaults
from rivermark.ingest.source.avro_values import is_endless, mark
from rivermark.ingest.source.kafka.formats import Avro, Format, KeyFormat, Protobuf
from rivermark.ingest.source.kafka.protobuf_values import message_class, of_protobuf
from rivermark.ingest.source.kafka.registry_header import UnreadableValue, without_header
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text


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
