"""Values in Avro and Protobuf as JSON, with and without the header of a schema registry."""

from __future__ import annotations

import base64
import copy
import dataclasses
import io
import json
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import UUID

import fastavro
import pytest
from confluent_kafka import Message
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory
from hypothesis import assume, given
from hypothesis import strategies as st

from rivermark import Contract, DeclarationError, Field, RivermarkError
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.source.avro_values import RepeatedKey
from rivermark.ingest.source.kafka.decoding import check_format, record_of
from rivermark.ingest.source.kafka.formats import Format
from rivermark.ingest.source.kafka.messages import payload_of
from rivermark.ingest.source.kafka.pieces import columns_of
from rivermark.ingest.source.kafka.registry_header import UnreadableValue
from rivermark.sources import Avro, KafkaSource, Protobuf
from tests.oracles.raw_lines import lines_of
from tests.unit.ingest.source.kafka.test_messages import Sent

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Ride",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "fare", "type": ["null", DECIMAL]},
        {"name": "mark", "type": "bytes"},
        {"name": "way", "type": {"type": "enum", "name": "Way", "symbols": ["IN", "OUT"]}},
    ],
}
RIDE = {"id": 2**53 + 1, "at": NOON, "fare": Decimal("12.50"), "mark": b"\x00\xff", "way": "OUT"}
AS_JSON = {
    "id": 2**53 + 1,
    "at": "2024-03-01T12:00:00Z",
    "fare": "12.50",
    "mark": "AP8=",
    "way": "OUT",
}
NEWER = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "tip", "type": "long", "default": 3}]}


def json_of(value: bytes, kind: Avro | Protobuf) -> str:
    """The text of a value's JSON."""
    return record_of(value, kind)[1]


def binary(record: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> bytes:
    """A record as it is sent."""
    content = io.BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(schema), record)
    return content.getvalue()


def header(number: int) -> bytes:
    """The header of a schema registry."""
    return b"\0" + number.to_bytes(4, "big")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "7.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "8.avsc").write_text(json.dumps(NEWER))
    return tmp_path


def test_avro_records_are_read_by_one_schema_or_by_those_of_a_registry(folder: Path) -> None:
    plain = Avro(schema=str(folder / "7.avsc"))
    assert json.loads(json_of(binary(RIDE), plain)) == AS_JSON
    assert json.loads(json_of(binary({**RIDE, "fare": None}), plain))["fare"] is None

    registry = Avro(registry=str(folder))
    newer = binary({**RIDE, "tip": 5}, NEWER)
    assert json.loads(json_of(header(7) + binary(RIDE), registry)) == AS_JSON
    assert json.loads(json_of(header(8) + newer, registry)) == {**AS_JSON, "tip": 5}

    read_as_newer = Avro(registry=str(folder), schema=str(folder / "8.avsc"))
    assert json.loads(json_of(header(7) + binary(RIDE), read_as_newer)) == {**AS_JSON, "tip": 3}
    read_as_older = Avro(registry=str(folder), schema=str(folder / "7.avsc"))
    assert json.loads(json_of(header(8) + newer, read_as_older)) == AS_JSON
    # As Spark's workers get it.
    assert copy.deepcopy(registry) == registry


def test_a_field_that_was_added_has_its_default_as_if_it_had_been_sent(tmp_path: Path) -> None:
    old = {"type": "record", "name": "Ride", "fields": [{"name": "id", "type": "long"}]}
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    place: dict[str, Any] = {
        "type": "record",
        "name": "Place",
        "fields": [
            {"name": "mark", "type": "bytes", "default": "\u00ff"},
            {"name": "since", "type": ["null", millis], "default": None},
            {"name": "zone", "type": "int"},
        ],
    }
    added: dict[str, tuple[Any, Any]] = {
        "mark": ("bytes", "\u0000\u00ff"),
        "fare": (DECIMAL, "\u0004\u00e2"),
        "at": (millis, 1_709_294_400_000),
        "day": ({"type": "int", "logicalType": "date"}, 1),
        "place": (place, {"zone": 7}),
        "next": ("Place", {"zone": 8, "mark": "a"}),
        "fares": ({"type": "array", "items": DECIMAL}, ["\u0001"]),
        "marks": ({"type": "map", "values": "bytes"}, {"a": "\u00ff"}),
        "either": ([DECIMAL, "null"], "\u0002"),
        "share": ("float", 0.0025),
    }
    fields = [{"name": n, "type": kind, "default": d} for n, (kind, d) in added.items()]
    for number, schema in ((1, old), (2, {**old, "fields": [*old["fields"], *fields]})):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    kind = Avro(registry=str(tmp_path), schema=str(tmp_path / "2.avsc"))
    read = json.loads(json_of(header(1) + binary({"id": 5}, old), kind))
    sent = {
        "id": 5,
        "mark": b"\0\xff",
        "fare": Decimal("12.50"),
        "at": NOON,
        "day": date(1970, 1, 2),
        "place": {"mark": b"\xff", "since": None, "zone": 7},
        "next": {"mark": b"a", "since": None, "zone": 8},
        "fares": [Decimal("0.01")],
        "marks": {"a": b"\xff"},
        "either": Decimal("0.02"),
        "share": 0.0025,
    }
    whole = {**old, "fields": [*old["fields"], *fields]}
    assert read == json.loads(json_of(header(2) + binary(sent, whole), kind))
    assert (read["mark"], read["fare"], read["at"]) == ("AP8=", "12.50", "2024-03-01T12:00:00Z")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "no Avro record: EOFError"),
        (b'{"id": 1}', "no Avro record"),
        (binary(RIDE)[:-3], "no Avro record"),
        (binary(RIDE) + b"\0", "bytes are left over"),
    ],
)
def test_what_is_no_avro_record_is_named(folder: Path, value: bytes, why: str) -> None:
    with pytest.raises(UnreadableValue, match=why):
        json_of(value, Avro(schema=str(folder / "7.avsc")))
    with pytest.raises(UnreadableValue, match=r"header of a schema registry|no Avro record"):
        json_of(value, Avro(registry=str(folder)))


def test_a_schema_that_the_registry_lacks_stops_reading_until_it_is_put_there(
    folder: Path,
) -> None:
    registry = Avro(registry=str(folder))
    with pytest.raises(RivermarkError, match=r"schema 9, which .* does not hold: .* as 9\.avsc"):
        json_of(header(9) + binary(RIDE), registry)
    (folder / "9.avsc").write_text(json.dumps(SCHEMA))
    assert json.loads(json_of(header(9) + binary(RIDE), registry)) == AS_JSON


def ride_file() -> descriptor_pb2.FileDescriptorProto:
    """The file of a message with a number, a 64-bit one, a text, bytes, and a repeated text."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="ride.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Ride")
    for number, (name, kind) in enumerate(
        {
            "ride_id": kinds.TYPE_INT64,
            "seats": kinds.TYPE_INT32,
            "at": kinds.TYPE_STRING,
            "mark": kinds.TYPE_BYTES,
        }.items(),
        start=1,
    ):
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="tags", number=5, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    return file


def test_protobuf_messages_are_read_by_their_descriptor(tmp_path: Path) -> None:
    descriptor = tmp_path / "rides.desc"
    descriptor.write_bytes(descriptor_pb2.FileDescriptorSet(file=[ride_file()]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(ride_file())
    ride = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Ride"))
    value = ride(ride_id=2**53 + 1, at="noon", mark=b"\0", tags=["a"]).SerializeToString()
    expected = {
        "ride_id": str(2**53 + 1),
        "seats": 0,
        "at": "noon",
        "mark": "AA==",
        "tags": ["a"],
    }
    kind = Protobuf(descriptor=str(descriptor), message="shop.Ride")
    with_header = Protobuf(descriptor=str(descriptor), message="shop.Ride", header=True)
    check_format(kind)
    assert json.loads(json_of(value, kind)) == expected
    # The first message of a file, in short; and the path 1, 0 in full.
    for path in (b"\0", b"\x04\x02\x00"):
        assert json.loads(json_of(header(3) + path + value, with_header)) == expected
    for unreadable in (value[:-1], b"\xff\xff\xff"):
        with pytest.raises(UnreadableValue, match=r"no shop\.Ride"):
            json_of(unreadable, kind)
    for unreadable in (value, header(3), header(3) + b"\xff"):
        with pytest.raises(UnreadableValue, match="header of a schema registry"):
            json_of(unreadable, with_header)


@pytest.fixture
def trips(tmp_path: Path) -> Protobuf:
    """Messages of proto2: one must have a number; of each other kind of field there is one."""
    kinds = descriptor_pb2.FieldDescriptorProto
    optional, repeated = {"label": kinds.LABEL_OPTIONAL}, {"label": kinds.LABEL_REPEATED}
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="shop", syntax="proto2")
    file.enum_type.add(name="Way").value.add(name="IN", number=0)
    trip, fare = file.message_type.add(name="Trip"), file.message_type.add(name="Fare")
    trip.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_REQUIRED)
    trip.field.add(name="way", number=2, type=kinds.TYPE_ENUM, type_name=".shop.Way", **optional)
    within = {"type": kinds.TYPE_MESSAGE, **repeated}
    trip.field.add(name="fares", number=3, type_name=".shop.Fare", **within)
    trip.field.add(name="by_day", number=4, type_name=".shop.Trip.ByDayEntry", **within)
    entry = trip.nested_type.add(name="ByDayEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_INT32, **optional)
    entry.field.add(name="value", number=2, type=kinds.TYPE_ENUM, type_name=".shop.Way", **optional)
    fare.field.add(name="cents", number=1, type=kinds.TYPE_INT64, **optional)
    path = tmp_path / "trips.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return Protobuf(descriptor=str(path), message="shop.Trip")


def test_fields_of_another_type_and_missing_ones_end_in_the_quarantine_and_no_newer_ones(
    trips: Protobuf,
) -> None:
    refused = {
        b"": "missing required fields: id",
        # The number as a text; and that of a fare within the message.
        b"\x0a\x01a": "field id is of another type in it|missing required fields",
        b"\x08\x05\x0a\x01a": "field id is of another type in it",
        b"\x08\x05\x1a\x03\x0a\x01a": "field cents is of another type in it",
        b"\x08\x05\x12\x01a": "field way is of another type in it",
    }
    for value, why in refused.items():
        with pytest.raises(UnreadableValue, match=rf"no shop\.Trip: .*({why})"):
            json_of(value, trips)
    # Numbers that the enumeration will have: 9, also in the entry of a map.
    for newer in (b"\x10\x09", b"\x22\x04\x08\x01\x10\x09"):
        value = b"\x08\x05" + newer
        read = json.loads(json_of(value, trips))
        assert (read["id"], base64.b64decode(read["_bytes"])) == ("5", value)


def test_a_message_of_another_type_of_its_file_is_not_read_as_this_one(trips: Protobuf) -> None:
    with_header = dataclasses.replace(trips, header=True)
    value = b"\x08\x05"
    # The first message, in short and in full; and paths that this file does not have.
    for path in (b"\0", b"\x02\x00", b"\x02\x08", b"\x04\x02\x00"):
        assert json.loads(json_of(header(3) + path + value, with_header))["id"] == "5"
    for path, name in ((b"\x02\x02", "Fare"), (b"\x04\x00\x00", "Trip.ByDayEntry")):
        with pytest.raises(UnreadableValue, match=rf"no shop\.Trip: .* it is a shop\.{name}$"):
            json_of(header(3) + path + value, with_header)
    of_another = dataclasses.replace(with_header, message="shop.Fare")
    assert json.loads(json_of(header(3) + b"\x02\x02" + value, of_another)) == {"cents": "5"}


def test_files_that_a_format_names_are_looked_for_when_the_source_is_opened(
    tmp_path: Path,
) -> None:
    (tmp_path / "bad.avsc").write_text("{")
    (tmp_path / "bad.desc").write_bytes(b"\xff")
    formats: dict[str, Format] = {
        "bad.avsc cannot be read": Avro(schema=str(tmp_path / "bad.avsc")),
        "none.avsc cannot be read": Avro(schema=str(tmp_path / "none.avsc")),
        "folder of Avro schemas .* does not exist": Avro(registry=str(tmp_path / "none")),
        "'shop.Ride' cannot be found in": Protobuf(
            descriptor=str(tmp_path / "bad.desc"), message="shop.Ride"
        ),
    }
    for fault, kind in formats.items():
        with pytest.raises(RivermarkError, match=fault):
            KafkaSource(topics="rides", format=kind).open("")
    with pytest.raises(DeclarationError, match="needs a schema, a registry, or both"):
        Avro()


def test_no_value_of_an_avro_record_is_lost_or_changed(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "ratio": "double",
        "more": ["null", {"type": "array", "items": "float"}],
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "exact": {"type": "long", "logicalType": "timestamp-nanos"},
        "fare": DECIMAL,
        "tags": {"type": "map", "values": "int"},
    }
    schema = {
        "type": "record",
        "name": "Ride",
        "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
    }
    for number in (1, 2):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    record = {
        "ratio": float("nan"),
        "more": [float("-inf"), 0.0025],
        "at": 2**62,
        "exact": 1_709_294_400_186_000_999,
        "fare": (10**12 + 1).to_bytes(8, "big"),
        "tags": {RepeatedKey("a"): 1, RepeatedKey("a"): 2},
    }
    value = header(1) + binary(record, schema)
    folder = str(tmp_path)
    for kind in (
        Avro(registry=folder),
        Avro(registry=folder, schema=str(tmp_path / "1.avsc")),
        Avro(registry=folder, schema=str(tmp_path / "2.avsc")),
    ):
        text = json_of(value, kind)
        assert '"tags":{"a":1,"a":2}' in text
        assert json.loads(text) == {
            "ratio": "NaN",
            "more": ["-Infinity", 0.0025],
            "at": "+148108-07-06T14:00:27.387904Z",
            "exact": "2024-03-01T12:00:00.186000Z",
            "fare": "10000000000.01",
            "tags": {"a": 2},
        }


def test_a_float_that_became_a_double_keeps_its_digits(tmp_path: Path) -> None:
    for number, kind in ((1, "float"), (2, "double")):
        fields = [{"name": "level", "type": ["null", kind]}]
        schema = {"type": "record", "name": "Level", "fields": fields}
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema))
    value = header(1) + b"\x02" + struct.pack("<f", 0.0025)
    wider = Avro(registry=str(tmp_path), schema=str(tmp_path / "2.avsc"))
    assert json_of(value, wider) == '{"level":0.0025}'


PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "at", "type": [{"type": "array", "items": "double"}, "null"]},
    ],
}
ANYTHING = {
    "type": "record",
    "name": "Anything",
    "fields": [
        {"name": "number", "type": ["null", "long"]},
        {"name": "share", "type": "double"},
        {"name": "mark", "type": ["bytes", "null"]},
        {"name": "either", "type": [PLACE, "string", {"type": "map", "values": "Place"}]},
    ],
}
SHARES = st.floats(width=64)
PLACES = st.fixed_dictionaries({"name": st.text(), "at": st.none() | st.lists(SHARES, max_size=3)})
RECORDS = st.fixed_dictionaries(
    {
        "number": st.none() | st.integers(-(2**63), 2**63 - 1),
        "share": SHARES,
        "mark": st.none() | st.binary(),
        "either": PLACES | st.text() | st.dictionaries(st.text(), PLACES, max_size=2),
    }
)


def as_json(value: Any) -> Any:
    """What a value is to be in JSON, by the page of the source."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list) else value


@given(RECORDS)
def test_every_value_of_an_avro_record_is_unchanged(record: dict[str, Any]) -> None:
    # A map of places whose names are those of a place's fields fits both branches of the union.
    assume(
        not (
            isinstance(record["either"], dict)
            and {"name", "at"} & {*record["either"]}
            and set(record["either"]) != {"name", "at"}
        )
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "anything.avsc"
        path.write_text(json.dumps(ANYTHING))
        value = binary(record, ANYTHING)
        assert json.loads(json_of(value, Avro(schema=str(path)))) == as_json(record)


TYPES = ("string", "long", "double", "boolean", "timestamp", "decimal(12,3)")
NAMES = ("number", "share", "mark", "either", "_offset", "_timestamp", "_key", "_header.h")
EVERYTHING = Contract(
    fields=tuple(
        Field(f"f{n}_{k}", kind, (name,))
        for n, name in enumerate(NAMES)
        for k, kind in enumerate(TYPES)
    )
)


@given(st.lists(st.tuples(RECORDS, st.sampled_from(["", "key", "header", "bad"])), min_size=1))
def test_columns_of_decoded_messages_are_typed_as_their_payloads_are(
    sent: list[tuple[dict[str, Any], str]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "anything.avsc"
        path.write_text(json.dumps(ANYTHING))
        kind = Avro(schema=str(path))
        read = [payload_of(cast(Message, message(*each)), kind) for each in sent]
    assert [record is None for _, record in read] == [what == "bad" for _, what in sent]
    check_columns_are_those_of_payloads(EVERYTHING, read)


def check_columns_are_those_of_payloads(
    contract: Contract, read: Sequence[tuple[str, Mapping[str, Any] | None]]
) -> None:
    """Raise AssertionError where a column that is cast differs from the one that is parsed."""
    wanted = frozenset(name.lower() for name in contract.spellings())
    known = columns_of([record for _, record in read], wanted)
    lines = lines_of([payload for payload, _ in read], "json")
    parser = ContractParser(contract, ",")
    by_columns, by_payload = parser.parse(lines, known), parser.parse(lines)
    for name in by_payload.column_names:
        assert by_columns[name].equals(by_payload[name]), name


def message(record: dict[str, Any], what: str) -> Sent:
    """A message with a record, or with bytes that are none."""
    return sent_as(binary(record, ANYTHING), what)


def sent_as(value: bytes, what: str) -> Sent:
    """A value by itself, with a key or a header, or bytes that are no value."""
    named = b"12" if what == "key" else None
    headed = [("h", b"1.5")] if what == "header" else None
    return Sent(b"\xff" if what == "bad" else value, named=named, headed=headed)


SCALARS: dict[str, tuple[int, st.SearchStrategy[Any]]] = {
    "f64": (descriptor_pb2.FieldDescriptorProto.TYPE_DOUBLE, SHARES),
    "f32": (descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT, st.floats(width=32)),
    "i64": (descriptor_pb2.FieldDescriptorProto.TYPE_INT64, st.integers(-(2**63), 2**63 - 1)),
    "u64": (descriptor_pb2.FieldDescriptorProto.TYPE_UINT64, st.integers(0, 2**64 - 1)),
    "i32": (descriptor_pb2.FieldDescriptorProto.TYPE_SINT32, st.integers(-(2**31), 2**31 - 1)),
    "flag": (descriptor_pb2.FieldDescriptorProto.TYPE_BOOL, st.booleans()),
    "text": (descriptor_pb2.FieldDescriptorProto.TYPE_STRING, st.text()),
    "mark": (descriptor_pb2.FieldDescriptorProto.TYPE_BYTES, st.binary()),
    "way": (descriptor_pb2.FieldDescriptorProto.TYPE_ENUM, st.sampled_from([0, 1, 7, -1])),
}
"""The kinds of Protobuf's fields, and values of each; of an enumeration also some it has not."""
VALUES = {name: values for name, (_, values) in SCALARS.items()}
WITHIN = st.fixed_dictionaries({}, optional=VALUES)
ALL_OF_PROTOBUF = st.fixed_dictionaries(
    {},
    optional=VALUES
    | {f"o_{name}": values for name, values in VALUES.items()}
    | {
        "within": WITHIN,
        "texts": st.lists(st.text(), max_size=2),
        "many": st.lists(WITHIN, max_size=2),
        "by_name": st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1), max_size=2),
    },
)


def file_of_all_kinds() -> descriptor_pb2.FileDescriptorProto:
    """A message of proto3 with a field of each kind, plain, optional, repeated, and within one."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", package="shop", syntax="proto3")
    ways = file.enum_type.add(name="Way")
    for number, name in enumerate(("IN", "OUT")):
        ways.value.add(name=name, number=number)
    whole, within = file.message_type.add(name="All"), file.message_type.add(name="Within")
    number = 0

    def add(name: str, kind: int, to: Any = whole, **options: Any) -> None:
        nonlocal number
        number += 1
        if kind == kinds.TYPE_ENUM:
            options["type_name"] = ".shop.Way"
        to.field.add(
            name=name, number=number, type=kind, **{"label": kinds.LABEL_OPTIONAL, **options}
        )

    for name, (kind, _) in SCALARS.items():
        add(name, kind)
        add(name, kind, within)
        add(f"o_{name}", kind, proto3_optional=True, oneof_index=len(whole.oneof_decl))
        whole.oneof_decl.add(name=f"_o_{name}")
    repeated = {"label": kinds.LABEL_REPEATED}
    add("within", kinds.TYPE_MESSAGE, type_name=".shop.Within")
    add("texts", kinds.TYPE_STRING, **repeated)
    add("many", kinds.TYPE_MESSAGE, type_name=".shop.Within", **repeated)
    add("by_name", kinds.TYPE_MESSAGE, type_name=".shop.All.ByNameEntry", **repeated)
    entry = whole.nested_type.add(name="ByNameEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    return file


MADE = descriptor_pool.DescriptorPool()
MADE.Add(file_of_all_kinds())
ALL = message_factory.GetMessageClass(MADE.FindMessageTypeByName("shop.All"))
ALL_KINDS = Contract(
    fields=tuple(
        Field(f"{name}_{n}", kind, (name,))
        for name in (*SCALARS, "o_i64", "o_f64", "o_text", "within", "texts", "many", "by_name")
        for n, kind in enumerate(TYPES)
    )
    + tuple(Field(f"by_broker_{n}", "long", (name,)) for n, name in enumerate(NAMES[4:]))
)


@given(
    st.lists(
        st.tuples(ALL_OF_PROTOBUF, st.sampled_from(["", "key", "header", "bad", "newer"])),
        min_size=1,
    )
)
def test_columns_of_protobuf_messages_are_typed_as_their_payloads_are(
    sent: list[tuple[dict[str, Any], str]],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "all.desc"
        files = descriptor_pb2.FileDescriptorSet(file=[file_of_all_kinds()])
        path.write_bytes(files.SerializeToString())
        kind = Protobuf(descriptor=str(path), message="shop.All")
        read = [payload_of(cast(Message, protobuf_message(*each)), kind) for each in sent]
    assert [record is None for _, record in read] == [what == "bad" for _, what in sent]
    check_columns_are_those_of_payloads(ALL_KINDS, read)


def protobuf_message(record: dict[str, Any], what: str) -> Sent:
    """A message with a record, with one of a newer descriptor, or with bytes that are none."""
    value = ALL(**record).SerializeToString()
    # Field 900 is a text.
    return sent_as(value + (b"\xa2\x38\x01a" if what == "newer" else b""), what)


def test_records_within_records_end_in_the_quarantine_and_not_the_process(tmp_path: Path) -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"]}],
    }
    (tmp_path / "node.avsc").write_text(json.dumps(node))
    kind = Avro(schema=str(tmp_path / "node.avsc"))
    assert json.loads(json_of(b"\2\2\0", kind)) == {"next": {"next": {"next": None}}}
    for depth in (1_000, 1_000_000):
        with pytest.raises(UnreadableValue, match="RecursionError"):
            json_of(b"\2" * depth + b"\0", kind)


def test_what_a_descriptor_does_not_know_is_kept(tmp_path: Path) -> None:
    file = ride_file()
    ways = file.enum_type.add(name="Way")
    ways.value.add(name="IN", number=0)
    kinds = descriptor_pb2.FieldDescriptorProto
    optional = {"label": kinds.LABEL_OPTIONAL}
    [ride] = file.message_type
    ride.field.add(name="way", number=6, type=kinds.TYPE_ENUM, type_name=".shop.Way", **optional)
    any_type = {"type": kinds.TYPE_MESSAGE, "type_name": ".google.protobuf.Any"}
    ride.field.add(name="more", number=7, **any_type, **optional)
    ride.field.add(name="share", number=8, type=kinds.TYPE_DOUBLE, **optional)
    file.dependency.append("google/protobuf/any.proto")
    of_any = descriptor_pb2.FileDescriptorProto()
    any_pb2.DESCRIPTOR.CopyToProto(of_any)
    files = descriptor_pb2.FileDescriptorSet(file=[of_any, file])
    (tmp_path / "rides.desc").write_bytes(files.SerializeToString())
    kind = Protobuf(descriptor=str(tmp_path / "rides.desc"), message="shop.Ride")

    def read(value: bytes) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(json_of(value, kind))
        return record

    plain = {"ride_id": "0", "seats": 0, "at": "", "mark": "", "tags": [], "share": 0.0}
    # Field 6 (an enumeration) holds 7, and -1.
    assert read(b"\x30\x07") == plain | {"way": 7}
    assert read(b"\x30" + b"\xff" * 9 + b"\x01") == plain | {"way": -1}
    # Field 1 holds the smallest of 64 bits.
    assert read(b"\x08" + b"\x80" * 9 + b"\x01")["ride_id"] == str(-(2**63))
    assert read(b"\x41" + struct.pack("<d", math.inf))["share"] == "Infinity"
    # Field 31 is of a newer descriptor.
    newer = b"\x10\x02\xfa\x01\x03abc"
    assert read(newer) == plain | {
        "seats": 2,
        "way": "IN",
        "_bytes": base64.b64encode(newer).decode(),
    }
    # Field 7 holds a message of a type that is in the descriptor, and of one that is not.
    known = b"\x0a\x0bt/shop.Ride\x12\x02\x10\x05"
    assert read(b"\x3a" + bytes([len(known)]) + known)["more"]["seats"] == 5
    unknown = known.replace(b"shop.Ride", b"shop.Rode")
    for value in (
        b"\x3a" + bytes([len(unknown)]) + unknown,
        b"\x1a\x01\xff",
        b"\x08" + b"\x80" * 11,
    ):
        with pytest.raises(UnreadableValue, match=r"no shop\.Ride"):
            read(value)


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FIXED = {"type": "fixed", "name": "Four", "size": 4}
RESOLVED: list[tuple[Any, Any, Any, Any]] = [
    ("long", MILLIS, 1_709_294_400_000, "2024-03-01T12:00:00Z"),
    (MILLIS, "long", NOON, 1_709_294_400_000),
    (MILLIS, MICROS, NOON, "2024-03-01T12:00:00Z"),
    ("int", {"type": "int", "logicalType": "date"}, 19_783, "2024-03-01"),
    ({"type": "int", "logicalType": "date"}, "long", date(2024, 3, 1), 19_783),
    ("int", MILLIS, 86_400_000, "1970-01-02T00:00:00Z"),
    ("bytes", DECIMAL, b"\x04\xe2", "12.50"),
    (DECIMAL, "bytes", Decimal("12.50"), "BOI="),
    (DECIMAL, {**DECIMAL, "precision": 12}, Decimal("12.50"), "12.50"),
    (
        FIXED,
        {**FIXED, "logicalType": "decimal", "precision": 9, "scale": 2},
        b"\0\0\4\xe2",
        "12.50",
    ),
    ("string", {"type": "string", "logicalType": "uuid"}, "a" * 32, str(UUID("a" * 32))),
    ("long", "double", 5, 5.0),
    ("int", "float", 5, 5.0),
    ("string", "bytes", "ü", "w7w="),
    ("bytes", "string", "ü".encode(), "ü"),
    ("int", "long", 5, 5),
    ("string", "string", "x", "x"),
]


@pytest.mark.parametrize(("written", "wanted", "value", "found"), RESOLVED)
@pytest.mark.parametrize("nullable", [False, True])
def test_m049_logical_types_are_those_of_the_schema_that_a_record_is_read_as(
    tmp_path: Path, written: Any, wanted: Any, value: Any, found: Any, nullable: bool
) -> None:
    def schema(kind: Any) -> dict[str, Any]:
        many = {"type": "array", "items": kind}
        if isinstance(kind, dict) and "name" in kind:
            many = {"type": "array", "items": kind["name"]}
        fields = [("v", ["null", kind] if nullable else kind), ("many", many)]
        named = [{"name": name, "type": each} for name, each in fields]
        return {"type": "record", "name": "R", "fields": named}

    for number, kind in ((1, written), (2, wanted)):
        (tmp_path / f"{number}.avsc").write_text(json.dumps(schema(kind)))
    record = {"v": value, "many": [] if written is FIXED else [value]}
    sent = header(1) + binary(record, schema(written))
    read = Avro(registry=str(tmp_path), schema=str(tmp_path / "2.avsc"))
    text = json_of(sent, read)
    assert json.loads(text) == {"v": found, "many": [] if written is FIXED else [found]}
    if nullable:
        none = header(1) + binary({"v": None, "many": []}, schema(written))
        assert json.loads(json_of(none, read)) == {"v": None, "many": []}
    # By its own schema alone a record is what it was written as.
    own = json.loads(json_of(sent, Avro(registry=str(tmp_path))))
    alone = json.loads(json_of(sent[5:], Avro(schema=str(tmp_path / "1.avsc"))))
    assert own == alone


def test_m051_ids_of_schemas_have_eight_bytes_where_that_is_declared(folder: Path) -> None:
    sent = b"\0" + (7).to_bytes(8, "big") + binary(RIDE)
    assert json.loads(json_of(sent, Avro(registry=str(folder), id_bytes=8))) == AS_JSON
    newer = Avro(registry=str(folder), schema=str(folder / "8.avsc"), id_bytes=8)
    assert json.loads(json_of(sent, newer)) == {**AS_JSON, "tip": 3}
    with pytest.raises(RivermarkError, match=r"the Avro schema 0, .* write id_bytes=8"):
        json_of(sent, Avro(registry=str(folder)))
    with pytest.raises(UnreadableValue, match="header"):
        json_of(b"\0" + binary(RIDE)[:5], Avro(registry=str(folder), id_bytes=8))
    with pytest.raises(DeclarationError, match="id_bytes"):
        Avro(registry="schemas", id_bytes=5)  # type: ignore[arg-type]


def test_r25_a_double_of_protobuf_has_the_text_that_others_have(tmp_path: Path) -> None:
    files = descriptor_pb2.FileDescriptorSet()
    field = descriptor_pb2.FieldDescriptorProto
    file = files.file.add(name="level.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Level")
    for number, (name, kind) in enumerate((("high", field.TYPE_DOUBLE), ("low", field.TYPE_FLOAT))):
        message.field.add(name=name, number=number + 1, type=kind, label=field.LABEL_OPTIONAL)
    path = tmp_path / "level.desc"
    path.write_bytes(files.SerializeToString())
    value = b"\x09" + struct.pack("<d", 1e16) + b"\x15" + struct.pack("<f", 0.1)
    kind = Protobuf(descriptor=str(path), message="shop.Level")
    assert json_of(value, kind) == '{"high":1e16,"low":0.1}'
