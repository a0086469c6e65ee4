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
from rivermark.ingest.source.kafka.formats import Avro, Format, Protobuf
from rivermark.ingest.source.kafka.protobuf_values import json_of_protobuf, message_class
from rivermark.ingest.source.kafka.registry_header import HEADER, UnreadableValue, schema_number
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text


@dataclass(frozen=True)
class _Schema:
    """An Avro schema as its library has it.

    `endless`: a record may hold another one of its type, and that one another, without end.
    """

    parsed: Any
    endless: bool


def check_format(kind: Format) -> None:
    """Raise RivermarkError where a file that the format names is missing or is not valid."""
    if isinstance(kind, Avro):
        if kind.schema:
            _avro_schema(Path(kind.schema))
        if kind.registry and not Path(kind.registry).is_dir():
            raise RivermarkError(f"the folder of Avro schemas {kind.registry} does not exist")
    elif isinstance(kind, Protobuf):
        message_class(kind.descriptor, kind.message)


def json_of(value: bytes, kind: Avro | Protobuf) -> str:
    """A value as the text of a JSON object.

    Raises:
        UnreadableValue: it is none of its format.
        RivermarkError: its schema is not in the registry.
    """
    return _json_of_avro(value, kind) if isinstance(kind, Avro) else json_of_protobuf(value, kind)


def _json_of_avro(value: bytes, kind: Avro) -> str:
    expected = _avro_schema(Path(kind.schema)) if kind.schema else None
    if kind.registry:
        written = _registered(kind.registry, schema_number(value))
        value = value[HEADER:]
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
    if not isinstance(record, dict) or content.read(1):
        raise UnreadableValue("no Avro record of this schema: bytes are left over, or no fields")
    return text.decode()


def _registered(folder: str, number: int) -> _Schema:
    path = Path(folder) / f"{number}.avsc"
    if not path.exists():
        # A schema that comes later than its messages is a mistake of a minute; they would be
        # quarantined for good.
        raise RivermarkError(
            f"messages name the Avro schema {number}, which folder {folder} does not hold: put it "
            f"there as {path.name}"
        )
    return _avro_schema(path)


@cache
def _avro_schema(path: Path) -> _Schema:
    try:
        parsed = fastavro.parse_schema(msgspec.json.decode(path.read_bytes()))
        schema = resolve_defaults(parsed)
    except Exception as error:
        raise RivermarkError(f"the Avro schema {path} cannot be read: {error}") from error
    endless = is_endless(schema)
    return _Schema(mark(schema), endless)
