"""Rows that were typed before are cast to the contract as their payloads are read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from rivermark import Contract, Field
from rivermark.ingest.parse.cutter import Cutter
from rivermark.ingest.parse.lane.lane import Typed
from rivermark.ingest.parse.parser import spelled
from rivermark.ingest.source.payload import TypedRecords, joined
from rivermark.ingest.source.typed_rows import typed_records
from tests.oracles.columns_of_contracts import rows
from tests.oracles.lines_of_contracts import EVERYTHING
from tests.oracles.typed_values import arrays, assert_exact, lane
from tests.seeds import seeds

WANTED = {name.lower() for field in EVERYTHING.fields for name in (field.name, *field.names)}


def cast(contract: Contract, records: TypedRecords) -> Typed:
    lines = arrays(records.payloads.to_pylist(), "parquet")
    typed = lane(contract).type(*lines, records.columns)
    cells = Cutter([spelled(f) for f in contract.fields], ",").cut(*lines)
    assert_exact(contract, typed, cells)
    return typed


@pytest.mark.parametrize("seed", seeds(12, 120))
def test_columns_are_typed_as_their_payloads_are(seed: int) -> None:
    count = (3, 700, 1_500)[seed % 3]
    records = typed_records(rows(seed, count), WANTED)
    typed = cast(EVERYTHING, records)
    alone = lane(EVERYTHING).type(*arrays(records.payloads.to_pylist(), "parquet"))
    # No row is asked for that the lane types by its payload.
    assert not (alone.good & ~typed.good).any()
    for name, column in typed.columns.items():
        both = pa.array(alone.good & typed.good)
        assert column.filter(both).equals(alone.columns[name].filter(both)), name


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
    assert cast(ONE, twice).columns["n"].to_pylist() == [1, 3]


def test_what_is_replaced_in_a_payload_is_asked_for_and_what_is_escaped_is_not() -> None:
    texts = ["x", 'a"b', "a\\b", "a\tb", "a\ufffdb", " x", "Zoë", None, ""]
    typed = cast(ONE, typed_records(batch(s=pa.array(texts)), None))
    assert typed.good.tolist() == [True, True, True, True, False, True, True, True, True]
    assert typed.columns["s"].to_pylist()[1:4] == texts[1:4]
    assert typed.columns["s"].to_pylist()[5:] == [" x", "Zoë", None, None]
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
    typed = lane(ONE).type(*arrays(records.payloads.to_pylist(), "parquet"), records.columns)
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, 2, 9, 3, None, 5]
    names = json.dumps(["at", "n"])
    payloads = pa.concat_arrays([first.payloads, pa.array(["2024-05-01T12:00:00Z,7"])])
    kinds, columns = pa.array(["parquet"] * 2 + ["csv"]), pa.array([None] * 2 + [names])
    typed = lane(ONE).type(payloads, kinds, columns, first.columns)
    assert typed.columns["n"].to_pylist() == [1, 2, 7]
