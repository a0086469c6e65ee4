"""Rows that were columns are typed by their columns' texts as by their payloads."""

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
from rivermark.ingest.source.json_rows import json_records
from rivermark.ingest.source.payload import JsonRecords, joined
from tests.oracles.columns_of_contracts import rows
from tests.oracles.lines_of_contracts import EVERYTHING
from tests.oracles.typed_values import arrays, assert_exact, lane
from tests.seeds import seeds

WANTED = {name.lower() for field in EVERYTHING.fields for name in (field.name, *field.names)}


def typed_by_texts(contract: Contract, records: JsonRecords) -> Typed:
    lines = arrays(records.payloads.to_pylist(), "parquet")
    typed = lane(contract).type(*lines, records.texts)
    cells = Cutter([spelled(f) for f in contract.fields], ",").cut(*lines)
    assert_exact(contract, typed, cells)
    return typed


@pytest.mark.parametrize("seed", seeds(12, 120))
def test_columns_are_typed_as_their_payloads_are(seed: int) -> None:
    count = (3, 700, 1_500)[seed % 3]
    records = json_records(rows(seed, count), WANTED)
    typed = typed_by_texts(EVERYTHING, records)
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
    records = json_records(
        batch(
            Other=pa.array([1, 2, None, None]),
            number=pa.array([None, 20, 30, None]),
            n=pa.array([None, None, 300, None]),
        ),
        None,
    )
    typed = typed_by_texts(ONE, records)
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, 20, 300, None]
    # Of two spellings that differ in the case alone the payload says which counts.
    twice = json_records(batch(N=pa.array([1, 2]), n=pa.array([None, 3])), None)
    assert typed_by_texts(ONE, twice).columns["n"].to_pylist() == [1, 3]


def test_what_is_escaped_or_replaced_in_a_payload_is_asked_for() -> None:
    texts = ["x", 'a"b', "a\\b", "a\tb", "a\ufffdb", " x", "Zoë", None, ""]
    typed = typed_by_texts(ONE, json_records(batch(s=pa.array(texts)), None))
    assert typed.good.tolist() == [True, False, False, False, False, False, True, True, True]
    broken = json_records(batch(s=pa.array([b"\xff", b"x"])), {"at", "s"})
    assert typed_by_texts(ONE, broken).good.tolist() == [False, True]
    other = json_records(batch(more=pa.array(["\\", "\ufffd", "x"])), {"at"})
    assert typed_by_texts(ONE, other).good.tolist() == [False, False, True]


def test_a_payload_that_is_too_long_is_asked_for() -> None:
    contract = replace(ONE, max_row_bytes=99)
    records = json_records(batch(s=pa.array(["x", None, "x" * 99])), None)
    assert typed_by_texts(contract, records).good.tolist() == [True, True, False]


def test_columns_that_are_not_known_or_nested_are_left_to_the_payload() -> None:
    nested = pa.RecordBatch.from_pydict({"at": [MOMENT], "s": [{"a": 1}]})
    assert json_records(nested, None).texts == ()
    assert typed_by_texts(ONE, json_records(nested, None)).columns["s"].to_pylist() == ['{"a": 1}']
    # Read for a contract that wants another column.
    for wanted in (set(), {"at"}, {"s"}):
        records = json_records(batch(s=pa.array(["x", "y"])), wanted)
        typed = typed_by_texts(ONE, records)
        assert typed.good.all()
        assert typed.columns["s"].to_pylist() == ["x", "y"]


def test_rows_of_several_files_and_formats_keep_their_order() -> None:
    first, second = (
        json_records(batch(n=pa.array(numbers)), None) for numbers in ([1, 2], [3, None, 5])
    )
    line = json.dumps({"at": "2024-05-01T12:00:00Z", "n": 9})
    middle = JsonRecords(pa.array([line]))
    records = joined([first, middle, second])
    typed = lane(ONE).type(*arrays(records.payloads.to_pylist(), "parquet"), records.texts)
    assert typed.good.all()
    assert typed.columns["n"].to_pylist() == [1, 2, 9, 3, None, 5]
    names = json.dumps(["at", "n"])
    payloads = pa.concat_arrays([first.payloads, pa.array(["2024-05-01T12:00:00Z,7"])])
    kinds, columns = pa.array(["parquet"] * 2 + ["csv"]), pa.array([None] * 2 + [names])
    typed = lane(ONE).type(payloads, kinds, columns, first.texts)
    assert typed.columns["n"].to_pylist() == [1, 2, 7]
