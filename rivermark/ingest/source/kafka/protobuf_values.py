"""Values of messages in Protobuf as JSON: none is read as another type, nor in part in silence."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from rivermark.ingest.source.kafka.formats import Protobuf
from rivermark.ingest.source.kafka.registry_header import UnreadableValue, without_header
from rivermark.model.errors import RivermarkError
from rivermark.model.json_text import json_text

VARINT: Final = 0
"""The wire type of integers and enumerations."""
FIRST: Final = (0,)
"""The path of a file's first message, which a header may leave out."""


def of_protobuf(value: bytes, kind: Protobuf) -> tuple[dict[str, Any], str]:
    """The members of a value, and its JSON; raises UnreadableValue where it is none."""
    # Loaded late: those who read JSON need not have it.
    from google.protobuf import json_format
    from google.protobuf.message import Error

    type_of = message_class(kind.descriptor, kind.message)
    if kind.header:
        path, value = _path(without_header(value)[1])
        _check_path(path, type_of.DESCRIPTOR)
    try:
        message = type_of.FromString(value)
        members: dict[str, Any] = json_format.MessageToDict(
            message,
            preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True,
            descriptor_pool=message.DESCRIPTOR.file.pool,
        )
        text = json_text(members).decode()
        # One without a field that it must have has no size.
        size = message.ByteSize()
    except (Error, json_format.Error, TypeError, ValueError, RecursionError) as error:
        raise UnreadableValue(f"no {kind.message}: {error}") from error
    if misfits := [*_misfits(message)]:
        raise UnreadableValue(f"no {kind.message}: field {misfits[0]} is of another type in it")
    message.DiscardUnknownFields()
    if message.ByteSize() < size:
        # Of a newer descriptor, which may be had later.
        members["_bytes"] = b64encode(value).decode()
        text = json_text(members).decode()
    return members, text


def _misfits(message: Any) -> Iterator[str]:
    """The fields that a message knows and that came as something else, which leaves them empty."""
    from google.protobuf.descriptor import FieldDescriptor
    from google.protobuf.unknown_fields import UnknownFieldSet

    known = message.DESCRIPTOR.fields_by_number
    for unknown in UnknownFieldSet(message):
        field = known.get(unknown.field_number)
        if field is None or _is_map(field):
            continue
        # A number that an enumeration of proto2 does not have is among the unknown ones, too, and
        # so is the entry of a map with such a number.
        is_newer = field.type == FieldDescriptor.TYPE_ENUM and unknown.wire_type == VARINT
        if not is_newer:
            yield field.name
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if _is_map(field):
            parts = [each for each in value.values() if hasattr(each, "ListFields")]
        else:
            parts = value if field.is_repeated else [value]
        for part in parts:
            yield from _misfits(part)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _path(value: bytes) -> tuple[Sequence[int], bytes]:
    """The path to a message's type within its file, and what is behind it.

    It is a length and so many indices, as varints in zigzag.
    """
    count, place = _varint(value, 0)
    path = []
    for _ in range(count // 2):
        index, place = _varint(value, place)
        path.append(index // 2)
    return path or FIRST, value[place:]


def _varint(value: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    for end in range(place, min(place + 10, len(value))):
        number |= (value[end] & 0x7F) << shift
        if value[end] < 0x80:
            return number, end + 1
        shift += 7
    raise UnreadableValue("it does not begin with the header of a schema registry")


def _check_path(path: Sequence[int], wanted: Any) -> None:
    """Raise UnreadableValue where the path leads to another message of the same file.

    Where it leads to none, the file is another one there, and says nothing.
    """
    types: Sequence[Any] = [*wanted.file.message_types_by_name.values()]
    named = None
    for index in path:
        if index >= len(types):
            return
        named = types[index]
        types = named.nested_types
    if named is not None and named.full_name != wanted.full_name:
        raise UnreadableValue(
            f"no {wanted.full_name}: its header says that it is a {named.full_name}"
        )


@cache
def message_class(descriptor: str, name: str) -> Any:
    """The class of a message; raises RivermarkError where its descriptor does not have it."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

        files = descriptor_pb2.FileDescriptorSet.FromString(Path(descriptor).read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except ImportError as error:
        raise RivermarkError(
            "Protobuf needs its library: pip install 'rivermark[kafka]'"
        ) from error
    except Exception as error:
        raise RivermarkError(
            f"the Protobuf message '{name}' cannot be found in {descriptor}: {error}"
        ) from error
