"""What a reader skips by is never wrong: bounds hold every value, or are not there."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rivermark.lake.append.data_file import leaves, statistics_of, write_data_file
from rivermark.lake.append.table_features import features_for


def told(rows: pa.Table) -> dict[str, Any]:
    """The statistics of all columns."""
    found: dict[str, Any] = json.loads(
        statistics_of(rows, list(leaves(rows.schema))), parse_float=Decimal
    )
    return found


def bounds(values: list[Any], kind: pa.DataType) -> tuple[Any, Any]:
    """Both bounds of one column; None where one is not told."""
    found = told(pa.table({"c": pa.array(values, kind)}))
    return found.get("minValues", {}).get("c"), found.get("maxValues", {}).get("c")


@pytest.mark.parametrize(
    ("values", "kind", "least", "greatest"),
    [
        ([3, None, 1], pa.int64(), 1, 3),
        ([2**62, 2**63 - 1], pa.int64(), 2**62, 2**63 - 1),
        ([True, False], pa.bool_(), False, True),
        ([date(2024, 1, 2), date(2024, 1, 1)], pa.date32(), "2024-01-01", "2024-01-02"),
        (
            [datetime(2024, 1, 1, 1, 2, 3, 456789, UTC)],
            pa.timestamp("us", "UTC"),
            "2024-01-01T01:02:03.456789Z",
            "2024-01-01T01:02:03.456789Z",
        ),
        (
            [Decimal("12345678901234567890.10")],
            pa.decimal128(38, 2),
            Decimal("12345678901234567890.10"),
            Decimal("12345678901234567890.10"),
        ),
        ([1.5, -0.25], pa.float64(), Decimal("-0.25"), Decimal("1.5")),
        ([1.5, float("inf")], pa.float64(), None, None),
        ([1.5, float("nan")], pa.float64(), None, None),
        (["b", "a", ""], pa.string(), "", "b"),
        (["\u00e9" * 40], pa.string(), "\u00e9" * 32, "\u00e9" * 32 + "\U0010ffff"),
        (
            ["x" * 32 + "\U0010ffff" * 2 + "y"],
            pa.string(),
            "x" * 32,
            "x" * 32 + "\U0010ffff" * 3,
        ),
        (["x" * 32 + "\U0010ffff"], pa.string(), "x" * 32, "x" * 32 + "\U0010ffff"),
        (["\U00020bb7"], pa.string(), "\U00020bb7", "\U00020bb7"),
        ([0.0, -0.0], pa.float64(), Decimal("-0.0"), Decimal("0.0")),
        ([None, None], pa.int64(), None, None),
        ([b"1"], pa.binary(), None, None),
        ([[1]], pa.list_(pa.int64()), None, None),
        ([2**60], pa.timestamp("us", "UTC"), None, None),
    ],
)
def test_bounds_of_a_column(
    values: list[Any], kind: pa.DataType, least: Any, greatest: Any
) -> None:
    assert bounds(values, kind) == (least, greatest)


def test_a_struct_s_columns_are_told_one_by_one() -> None:
    rows = pa.table({"p": [{"x": 1, "y": {"z": "a"}}, None, {"x": 2, "y": None}], "n": [1, 2, 3]})

    assert list(leaves(rows.schema)) == [("p", "x"), ("p", "y", "z"), ("n",)]
    assert told(rows) == {
        "numRecords": 3,
        "minValues": {"p": {"x": 1, "y": {"z": "a"}}, "n": 1},
        "maxValues": {"p": {"x": 2, "y": {"z": "a"}}, "n": 3},
        "nullCount": {"p": {"x": 1, "y": {"z": 2}}, "n": 0},
    }


@given(st.lists(st.text(max_size=80), min_size=1, max_size=5))
def test_every_text_lies_within_the_bounds(texts: list[str]) -> None:
    least, greatest = bounds(texts, pa.string())
    for text in texts:
        assert least.encode() <= text.encode()
        assert text.encode() <= greatest.encode()


def test_a_file_of_which_one_bound_cannot_be_told_has_none() -> None:
    rows = pa.table({"v": [1.5, float("nan")], "n": [1, 2]})

    assert told(rows) == {"numRecords": 2, "nullCount": {"v": 0, "n": 0}}


def test_a_column_with_nan_has_no_bounds_in_the_file_either(tmp_path: Path) -> None:
    nan = [1.5, float("nan")]
    rows = pa.table({"v": nan, "p": [{"x": v, "y": 1} for v in nan], "n": [1, 2], "l": [nan, nan]})
    file = tmp_path / write_data_file(str(tmp_path), rows, [])["add"]["path"]

    columns = pq.read_metadata(file).row_group(0)
    bounded = {columns.column(i).path_in_schema for i in range(5) if columns.column(i).statistics}
    assert bounded == {"p.y", "n"}


def test_a_name_that_begins_with_a_dot_is_no_path() -> None:
    rows = pa.table({"p": [{".x": 1, "a.b": "t"}], ".n": [2]})

    assert told(rows)["maxValues"] == {"p": {".x": 1, "a.b": "t"}, ".n": 2}


def test_the_file_holds_the_rows(tmp_path: Path) -> None:
    rows = pa.table({"n": [1, None], "d": pa.array([Decimal("1.10")] * 2, pa.decimal128(12, 2))})
    add = write_data_file(str(tmp_path), rows, [("n",)])["add"]

    file = tmp_path / add["path"]
    assert pq.read_table(file).equals(rows)
    assert add["size"] == file.stat().st_size
    assert json.loads(add["stats"])["nullCount"] == {"n": 1}


def test_texts_as_codes_are_written_as_texts_with_the_bounds_of_those_that_occur(
    tmp_path: Path,
) -> None:
    texts = ["c", None, "b", "c"]
    codes = pa.DictionaryArray.from_arrays(
        pa.array([2, None, 1, 2], pa.int32()), pa.array(["a", "b", "c", "z"])
    )
    wanted = told(pa.table({"c": pa.array(texts)}))
    assert told(pa.table({"c": codes})) == wanted
    assert told(pa.table({"c": codes.slice(1, 1)})) == told(pa.table({"c": pa.array(texts[1:2])}))

    rows = pa.table({"c": pa.chunked_array([codes, codes.slice(2)])})
    features = features_for(pa.schema({"c": pa.string(), "d": pa.int64()}))
    fitted = features.fit(rows)
    assert fitted is not None
    add = write_data_file(str(tmp_path), fitted, [("c",)])["add"]
    written = pq.read_table(tmp_path / add["path"])
    assert written["c"].type == pa.string()
    assert written["c"].to_pylist() == [*texts, *texts[2:]]
    assert json.loads(add["stats"])["minValues"] == {"c": "b"}
