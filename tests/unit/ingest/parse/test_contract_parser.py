"""Lines that are typed many at a time are what the careful parser makes of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.pandas.types import to_arrow_schema

from rivermark import Contract, DeclarationError, Field, readers
from rivermark.ingest.parse.contract_parser import ContractParser, contract_faults
from rivermark.ingest.parse.problems import DETAILS, PROBLEMS
from rivermark.ingest.parse.typed_read import Typed
from rivermark.ingest.source.files.pieces import parquet_records
from rivermark.ingest.source.payload import TypedRecords, joined
from rivermark.model.contract import FLAGS
from rivermark.model.source import Columns
from tests.oracles.columns_of_contracts import rows
from tests.oracles.lines_of_contracts import (
    CSV_COLUMNS,
    EVERYTHING,
    csv_lines,
    json_lines,
    nested_lines,
)
from tests.oracles.raw_lines import lines_of


def exact(values: pa.ChunkedArray) -> list[Any]:
    """Values that are equal only where their bits are."""
    if pa.types.is_floating(values.type):
        return [None if v is None else float(v).hex() for v in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())  # Some are beyond what Python has.
    plain: list[Any] = values.to_pylist()
    return plain


def assert_same(payloads: Sequence[str], got: pa.Table, wanted: pa.Table, names: list[str]) -> None:
    for name in names:
        pairs = zip(exact(got[name]), exact(wanted[name]), payloads, strict=True)
        differ = [(line, a, b) for a, b, line in pairs if a != b]
        assert not differ, f"{name}: {differ[:3]}"


PICKLE: Final[Any] = CloudPickleSerializer()


class Careful(ContractParser):
    """Asks for every line."""

    def _type(self, payloads: pa.Array, *_: Any) -> Typed:
        return Typed(
            {field.name: pa.nulls(0, field.values.type) for field in self.fields},
            np.zeros(len(payloads), np.bool_),
        )


def compare(
    contract: Contract,
    lines: pa.Table,
    least_typed: float = 0.0,
    known: Sequence[Columns] = (),
) -> None:
    contract = replace(
        contract, rules=tuple(r for r in contract.rules if isinstance(r.broken, str))
    )
    # As it comes to an executor.
    parser: ContractParser = PICKLE.loads(PICKLE.dumps(ContractParser(contract, ",")))
    got, wanted = parser.parse(lines, known), Careful(contract, ",").parse(lines)
    # What was read of one batch is remembered for the next.
    assert parser.parse(lines, known).equals(got)
    payloads = lines["payload"].to_pylist()
    assert got.schema == wanted.schema
    assert_same(payloads, got, wanted, ["_record"])
    record = wanted["_record"]
    names = [*(f.name for f in contract.fields), FLAGS, PROBLEMS, DETAILS]
    payloads = lines["payload"].filter(record).to_pylist()
    assert_same(payloads, got.filter(record), wanted.filter(record), names)
    payload, kinds, columns = (
        lines[n].combine_chunks() for n in ("payload", "_format", "_columns")
    )
    assert parser._type(payload, kinds, columns, known).good.mean() >= least_typed


ROUNDS = pytest.mark.parametrize(
    ("seed", "count"), [(0, 1_000), pytest.param(1, 6_000, marks=pytest.mark.long)]
)


@ROUNDS
def test_both_make_the_same_of_json_lines(seed: int, count: int) -> None:
    compare(EVERYTHING, lines_of([*json_lines(seed, count)]), least_typed=0.5)


@ROUNDS
def test_both_make_the_same_of_objects_in_json_lines(seed: int, count: int) -> None:
    compare(EVERYTHING, lines_of([*nested_lines(seed, count)]), least_typed=0.3)


@ROUNDS
def test_both_make_the_same_of_csv_lines(seed: int, count: int) -> None:
    lines = lines_of([*csv_lines(seed, count)], "csv", CSV_COLUMNS)
    compare(EVERYTHING, lines, least_typed=0.4)


@ROUNDS
def test_both_make_the_same_of_rows_of_parquet(tmp_path: Path, seed: int, count: int) -> None:
    wanted = {name.lower() for name in EVERYTHING.spellings()}
    parts: list[TypedRecords] = []
    for part, size in enumerate((count // 2, count, *[count // 40] * 10)):
        path = tmp_path / f"{part}.parquet"
        table = pa.table(rows(1_000 * seed + part, size))
        pq.write_table(table, path, use_deprecated_int96_timestamps=part % 4 == 3)
        parts += parquet_records(str(path), wanted)
    records = joined(parts)
    lines = lines_of(records.payloads.to_pylist(), "parquet")
    compare(EVERYTHING, lines, 0.2, records.columns)
    assert sum(known.rows.num_rows for known in records.columns) > count


def test_what_parsing_adds_is_what_it_says_to_spark() -> None:
    parser = ContractParser(EVERYTHING, ",")
    lines = lines_of([*json_lines(2, 50)])
    added = parser.parse(lines).drop_columns(lines.column_names)
    said = to_arrow_schema(parser.columns, timezone="UTC", prefers_large_types=False)
    assert added.column_names == said.names
    for name in said.names:
        if said.field(name).type != added.schema.field(name).type:
            assert pa.types.is_list(said.field(name).type), name


@pytest.mark.parametrize("count", [1, 40])
def test_r23_the_empty_text_is_no_value_whatever_words_are_none_beside_it(count: int) -> None:
    contract = Contract(
        fields=(
            Field("sensor", "string", required=True, nulls=("-",)),
            Field("at", "timestamp", required=True),
            Field("x", "double", nulls=("NA",)),
        ),
        event_time="at",
    )
    at = "2024-03-01T00:00:00Z"
    lines = [
        f'{{"sensor":"","at":"{at}"}}',
        f'{{"sensor":"-","at":"{at}"}}',
        f'{{"sensor":"s","at":"{at}","x":""}}',
        f'{{"sensor":"s","at":"{at}","x":"NA"}}',
    ]
    quoted = [f'"","{at}",""', f'"s","{at}",""', f'"s","{at}"," "', f'"s","{at}","NA"']
    for kind, columns, texts in (("json", None, lines), ("csv", ("sensor", "at", "x"), quoted)):
        parsed = ContractParser(contract, ",").parse(lines_of(texts * count, kind, columns))
        missing = 2 if kind == "json" else 1
        reasons = [["missing_sensor"]] * missing + [[]] * (4 - missing)
        assert parsed[PROBLEMS].to_pylist() == reasons * count
        assert parsed["x"].null_count == 4 * count


def test_readers_in_sql_that_cannot_be_are_faults_of_the_contract() -> None:
    paid = Field("paid", "int", read=readers.sql("CASE txt WHEN 'card' THEN 1 END"))
    contract = Contract(fields=(Field("at", "timestamp", required=True), paid), event_time="at")
    (fault,) = contract_faults("shop/orders", contract)
    assert (
        "stream 'shop/orders': field 'paid': its SQL over 'text': there is no column 'txt'"
        in str(fault)
    )
    with pytest.raises(DeclarationError, match="no column 'txt'"):
        ContractParser(contract, ",")


def test_payloads_with_offsets_of_64_bits_and_in_chunks_are_read_as_others() -> None:
    parser = ContractParser(EVERYTHING, ",")
    lines = lines_of([*json_lines(3, 200)])
    wanted = parser.parse(lines)
    place = lines.schema.get_field_index("payload")
    large = lines.set_column(place, "payload", lines["payload"].cast(pa.large_string()))
    chunks = pa.concat_tables([lines.slice(0, 7), lines.slice(7, 100), lines.slice(107)])
    for given_as in (large, chunks):
        got = parser.parse(given_as)
        for name in wanted.column_names[lines.num_columns :]:
            assert exact(got[name]) == exact(wanted[name]), name
