"""Rows as objects of JSON: nothing becomes null that is not."""

from __future__ import annotations

import math

import msgspec
import pyarrow as pa
import pytest

from rivermark.sinks.json_rows import json_rows


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_numbers_that_json_lacks_are_texts_however_deep(kind: pa.DataType) -> None:
    odd = [1.5, math.nan, math.inf, -math.inf, None]
    texts = [1.5, "NaN", "Infinity", "-Infinity", None]
    rows = pa.table(
        {
            "id": pa.array([2**53 + n for n in range(len(odd))]),
            "plain": pa.array(odd, kind),
            "listed": pa.array([[value] for value in odd], pa.list_(kind)),
            "inside": pa.array(
                [{"float": [("k", value)]} for value in odd],
                pa.struct({"float": pa.map_(pa.string(), kind)}),
            ),
        }
    )
    assert msgspec.json.decode(msgspec.json.encode(json_rows(rows))) == [
        {"id": 2**53 + n, "plain": text, "listed": [text], "inside": {"float": [["k", text]]}}
        for n, text in enumerate(texts)
    ]
    assert json_rows(rows.slice(0, 1).select(["plain"])) == [{"plain": 1.5}]
    assert json_rows(rows.slice(0, 0)) == []
