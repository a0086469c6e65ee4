"""Values of messages in Avro or Protobuf as JSON; in the driver and in Spark's workers."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import fastavro
import msgspec
from fastavro._read_py import schemaless_reader as careful_reader

from rivermark.ingest.source.avro_values import is_endless, mark
from rivermark.ingest.source.kafka.formats import Avro, Format, Protobuf
from rivermark.model.errors import RivermarkError
from rivermark.model.json_numbers import json_text

HEADER: Final = 5
"""Bytes of a schema registry's header: a zero, and the number of the schema."""


class UnreadableValue(ValueError):
    """A value is not what its format says; the text says why."""


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
        _message_class(kind.descriptor, kind.message)


def json_of(value: bytes, kind: Avro | Protobuf) -> str:
    """A value as the text of a JSON object.

    Raises:
        UnreadableValue: it is none of its format.
        RivermarkError: its schema is not in the registry.
    """
    return _json_of_avro(value, kind) if isinstance(kind, Avro) else _json_of_protobuf(value, kind)


def _json_of_avro(value: bytes, kind: Avro) -> str:
    expected = _avro_schema(Path(kind.schema)) if kind.schema else None
    if kind.registry:
        written = _registered(kind.registry, _schema_number(value))
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


def _json_of_protobuf(value: bytes, kind: Protobuf) -> str:
    # Loaded late: those who read JSON need not have it.
    from google.protobuf import json_format
    from google.protobuf.message import DecodeError

    if kind.header:
        _schema_number(value)
        value = _without_indices(value[HEADER:])
    try:
        message = _message_class(kind.descriptor, kind.message).FromString(value)
        text: str = json_format.MessageToJson(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            indent=None,
            descriptor_pool=message.DESCRIPTOR.file.pool,
        )
    except (DecodeError, json_format.Error, TypeError, ValueError, RecursionError) as error:
        raise UnreadableValue(f"no {kind.message}: {error}") from error
    size = message.ByteSize()
    message.DiscardUnknownFields()
    if message.ByteSize() < size:
        # Of a newer descriptor, which may be had later.
        comma = "" if text == "{}" else ","
        return f'{text[:-1]}{comma}"_bytes":"{b64encode(value).decode()}"}}'
    return text


def _schema_number(value: bytes) -> int:
    if len(value) < HEADER or value[0]:
        raise UnreadableValue("it does not begin with the header of a schema registry")
    return int.from_bytes(value[1:HEADER], "big")


def _without_indices(value: bytes) -> bytes:
    """What is behind the path to a message's type: its length and its indices, as varints."""
    count, place = _varint(value, 0)
    for _ in range(count // 2):  # Zigzag: a length is never negative.
        _, place = _varint(value, place)
    return value[place:]


def _varint(value: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    for end in range(place, min(place + 10, len(value))):
        number |= (value[end] & 0x7F) << shift
        if value[end] < 0x80:
            return number, end + 1
        shift += 7
    raise UnreadableValue("it does not begin with the header of a schema registry")


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
        schema = fastavro.parse_schema(msgspec.json.decode(path.read_bytes()))
    except Exception as error:
        raise RivermarkError(f"the Avro schema {path} cannot be read: {error}") from error
    endless = is_endless(schema)
    return _Schema(mark(schema), endless)


@cache
def _message_class(descriptor: str, name: str) -> Any:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        files = descriptor_pb2.FileDescriptorSet.FromString(Path(descriptor).read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except ImportError as error:
        raise RivermarkError(
            "reading Protobuf needs its library: pip install 'rivermark[kafka]'"
        ) from error
    except Exception as error:
        raise RivermarkError(
            f"the Protobuf message '{name}' cannot be found in {descriptor}: {error}"
        ) from error
