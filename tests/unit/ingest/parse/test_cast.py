"""Rows that were typed before are cast to the contract as their payloads are read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from rivermark import Contract, Field
from rivermark.ingest.parse.cast import read_known
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.cutter import Cutter, Spelled
from rivermark.ingest.parse.typed_read import Typed
from rivermark.ingest.source.payload import TypedRecords, joined
from rivermark.ingest.source.typed_rows import record_columns, typed_records
from rivermark.model.json_text import json_text
from rivermark.sinks.python_rows import python_rows
from tests.oracles.columns_of_contracts import rows
from tests.oracles.lines_of_contracts import EVERYTHING
from tests.oracles.raw_lines import lines_of
from tests.oracles.typed_values import arrays, assert_exact, typed_read
from tests.seeds import seeds

WANTED = {name.lower() for field in EVERYTHING.fields for name in (field.name, *field.names)}


def cast(contract: Contract, records: TypedRecords) -> Typed:
    lines = arrays(records.payloads.to_pylist(), "parquet")
    typed = read_known(typed_read(contract), *lines, records.columns)
    cells = Cutter([Spelled.of(f) for f in contract.fields], ",").cut(*lines)
    assert_exact(contract, typed, cells)
    return typed


def parsed(contract: Contract, records: TypedRecords) -> pa.Table:
    """What the parser makes of records, those of a small batch."""
    lines = lines_of(records.payloads.to_pylist(), "parquet")
    return ContractParser(contract, ",").parse(lines, records.columns)


@pytest.mark.parametrize("seed", seeds(12, 120))
def test_columns_are_typed_as_their_payloads_are(seed: int) -> None:
    count = (3, 700, 1_500)[seed % 3]
    records = typed_records(rows(seed, count), WANTED)
    typed = cast(EVERYTHING, records)
    alone = typed_read(EVERYTHING).read(*arrays(records.payloads.to_pylist(), "parquet"))
    # No row is asked for that is typed by its payload.
    assert not (alone.good & ~typed.good).any()
    both = alone.good & typed.good
    for name, column in typed.columns.items():
        by_payload = alone.columns[name].filter(pa.array(both[alone.good]))
        assert column.filter(pa.array(both[typed.good])).equals(by_payload), name


@pytest.mark.parametrize("seed", seeds(12, 120))
def test_columns_of_python_values_are_typed_as_their_payloads_are(seed: int) -> None:
    """As of Avro, Protobuf and PostgreSQL; a column of several kinds is its texts."""
    records = python_rows(rows(seed, (3, 300, 600)[seed % 3]))
    payloads = pa.array([json_text(record).decode() for record in records], pa.string())
    known = record_columns(records, WANTED)
    names = [name.lower() for name in records[0] if name.lower() in WANTED]
    assert bool(known) == (len(names) == len({*names}))
    typed = cast(EVERYTHING, TypedRecords(payloads, known))
    alone = typed_read(EVERYTHING).read(*arrays(payloads.to_pylist(), "parquet"))
    assert not (alone.good & ~typed.good).any()
    both = alone.good & typed.good
    for name, column in typed.columns.items():
        by_payload = alone.columns[name].filter(pa.array(both[alone.good]))
        assert column.filter(pa.array(both[typed.good])).equals(by_payload), name


ONE = Contract(
    fields=(
        Field("at", "timestamp", required=True),
        Field("n", "long", ("number", "Other")),
        Field("s", "string"),
    ),
    event_time="at",
)
MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)


def batch(**columns: pa.Array) -> pa.RecordBatch:
    at = pa.array([MOMENT] * len(next(iter(columns.values()))))
    return pa.RecordBatch.from_pydict({"at": at, **columns})


def test_the_first_spelling_that_has_a_value_counts() -> None:
    records = typed_records(
        batch(
            Other=pa.array([1, 2, None, None]),
            number=pa.array([None, 20, 30, None]),
            n=pa.array([None, None, 300, None]),
        ),
        None,
    )
    typed = cast(ONE, records)
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, 20, 300, None]
    # Of two spellings that differ in the case alone the payload says which counts.
    twice = typed_records(batch(N=pa.array([1, 2]), n=pa.array([None, 3])), None)
    assert parsed(ONE, twice)["n"].to_pylist() == [1, 3]


def test_what_is_replaced_in_a_payload_is_asked_for_and_what_is_escaped_is_not() -> None:
    texts = ["x", 'a"b', "a\\b", "a\tb", "a\ufffdb", " x", "Zoë", None, ""]
    typed = cast(ONE, typed_records(batch(s=pa.array(texts)), None))
    assert typed.good.tolist() == [True, True, True, True, False, True, True, True, True]
    assert typed.columns["s"].to_pylist()[1:4] == texts[1:4]
    assert typed.columns["s"].to_pylist()[4:] == [" x", "Zoë", None, None]
    broken = typed_records(batch(s=pa.array([b"\xff", b"x"])), {"at", "s"})
    assert cast(ONE, broken).good.tolist() == [False, True]
    other = typed_records(batch(more=pa.array(["\\", "\ufffd", "x"])), {"at"})
    assert cast(ONE, other).good.tolist() == [True, False, True]


def test_a_payload_that_is_too_long_is_asked_for() -> None:
    contract = replace(ONE, max_row_bytes=99)
    records = typed_records(batch(s=pa.array(["x", None, "x" * 99])), None)
    assert cast(contract, records).good.tolist() == [True, True, False]


def test_lists_maps_and_structs_are_texts_in_json() -> None:
    nested = pa.RecordBatch.from_pydict({"at": [MOMENT], "s": [{"a": [1, None], "b": "ü"}]})
    typed = cast(ONE, typed_records(nested, None))
    assert typed.good.all()
    assert typed.columns["s"].to_pylist() == ['{"a":[1,null],"b":"ü"}']


def test_rows_of_several_files_and_formats_keep_their_order() -> None:
    first, second = (
        typed_records(batch(n=pa.array(numbers)), None) for numbers in ([1, 2], [3, None, 5])
    )
    line = json.dumps({"at": "2024-05-01T12:00:00Z", "n": 9})
    middle = TypedRecords(pa.array([line]))
    records = joined([first, middle, second])
    assert parsed(ONE, records)["n"].to_pylist() == [1, 2, 9, 3, None, 5]


def test_payloads_of_an_older_lake_are_read_as_ever() -> None:
    """Those that were written before one value had one text (R25)."""
    contract = replace(
        ONE, fields=(*ONE.fields, Field("x", "double"), Field("paid", "decimal(12,2)"))
    )
    own = typed_records(
        batch(
            n=pa.array([5.0, None]),
            x=pa.array([1e10, 5e-06]),
            paid=pa.array([Decimal("12.50"), None]),
            s=pa.array(["x", "y"]),
        ),
        None,
    )
    before = [
        '{"at":"2024-05-01T12:00:00.000000Z","n":5.0,"x":1e+10,"paid":12.50,"s":"x"}',
        '{"at": "2024-05-01T12:00:00+00:00", "n": null, "x": 5e-06, "s": "y"}',
    ]
    names = ["at", "n", "x", "paid", "s", "_problems"]
    was = parsed(contract, TypedRecords(pa.array(before))).select(names)
    assert parsed(contract, own).select(names).equals(was)
    assert was["_problems"].to_pylist() == [[], []]
