"""What repeats is written once, and every row is what it would be alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rivermark.ingest.source.json_rows import SAMPLE, json_objects, json_records
from tests.oracles.columns_of_contracts import rows
from tests.seeds import seeds


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_rows_are_the_same_in_parts_of_any_size(seed: int) -> None:
    batch = rows(seed, 3 * SAMPLE)
    wanted = {"text", "note", "flag", "paid"} if seed % 3 else None
    whole = json_objects(batch, wanted)
    parts = [batch.slice(first, 99) for first in range(0, batch.num_rows, 99)]
    assert whole.equals(pa.concat_arrays([json_objects(part, wanted) for part in parts]))


def test_zeros_of_both_signs_and_every_nan_keep_their_texts() -> None:
    kind = pa.float64()
    values = pa.array([0.0, -0.0, float("nan"), None, float("-inf"), 1e22] * SAMPLE, kind)
    records = json_records(pa.RecordBatch.from_arrays([values], ["v"]), None)
    texts = ['{"v":0.0}', '{"v":-0.0}', '{"v":"NaN"}', "{}", '{"v":"-Infinity"}', '{"v":1e+22}']
    assert records.payloads.to_pylist() == texts * SAMPLE
    ((name, column),) = records.texts[0].columns
    assert name == "v"
    assert column is not None
    assert column.to_pylist() == ["0.0", "-0.0", "NaN", None, "-Infinity", "1e+22"] * SAMPLE
    assert len(column.dictionary) == 5


def test_what_does_not_repeat_has_no_dictionary() -> None:
    numbers = pa.array(range(3 * SAMPLE))
    records = json_records(pa.RecordBatch.from_arrays([numbers], ["v"]), None)
    assert records.texts[0].columns[0][1] == numbers.cast(pa.string())
