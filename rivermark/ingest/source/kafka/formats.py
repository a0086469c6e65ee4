"""Formats of message values that are neither JSON nor text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError


@declared("format", lambda values: values.get("schema") or values.get("registry"))
@dataclass(frozen=True, kw_only=True)
class Avro:
    """Values are Avro records in binary form, without a container file.

    `schema` is the file (`.avsc`) of the schema that all of them are written in. With `registry`,
    each begins with the header of a schema registry, a zero byte and the schema's number in
    `id_bytes`: four, or eight as Apicurio writes by default; `registry` is a folder that holds the
    schemas as `<number>.avsc`. With both, a record is read as `schema` has it, whichever schema it
    was written in.

    Paths count from the working folder of the run. Where Spark's workers run on other machines,
    they find the files below the same paths.

    Raises:
        DeclarationError: neither `schema` nor `registry`.
    """

    schema: str | None = None
    registry: str | None = None
    id_bytes: Literal[4, 8] = 4

    def __post_init__(self) -> None:
        if not (self.schema or self.registry):
            raise DeclarationError("Avro needs a schema, a registry, or both")


@declared("format", lambda values: values.get("message"))
@dataclass(frozen=True, kw_only=True)
class Protobuf:
    """Values are Protobuf messages of the type `message`, such as `shop.Ride`.

    `descriptor` is a file that `protoc --include_imports --descriptor_set_out` has written. With
    `header`, each value begins with the header of a schema registry, which is skipped. Fields have
    the names of the `.proto` file, and Protobuf's own form in JSON: 64-bit integers as text, bytes
    as base64, enumerations by name. A message with fields that the descriptor does not know keeps
    its bytes as `_bytes` beside them.
    """

    descriptor: str
    message: str
    header: bool = False


Format: TypeAlias = Literal["json", "text", "bytes"] | Avro | Protobuf
KeyFormat: TypeAlias = Literal["text", "bytes", "int", "long", "uuid"] | Avro | Protobuf
