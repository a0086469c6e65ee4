"""Rows are selected by a mask, whether they follow each other or not."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from rivermark.ingest.batch.arrow_batch import _where


def test_any_rows_are_those_that_a_filter_returns() -> None:
    rows = pa.table({"n": pa.chunked_array([[0, 1], [2, 3, None]]), "s": ["a", None, "c", "d", ""]})
    for marks in itertools.product([False, True], repeat=5):
        mask = np.array(marks)
        assert _where(rows, mask).equals(rows.filter(pa.array(mask)))
    assert _where(rows.slice(0, 0), np.zeros(0, np.bool_)).num_rows == 0
