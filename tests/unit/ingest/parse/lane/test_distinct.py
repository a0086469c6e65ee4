"""Values that repeat are read once, and are the same as each read where it stands."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from rivermark.ingest.parse.lane.distinct import FEWEST, distinct
from rivermark.ingest.parse.lane.lines import Lines
from rivermark.ingest.parse.lane.values import Values
from tests.oracles.lines_of_contracts import EVERYTHING, INTEGERS, OTHERS
from tests.oracles.typed_values import lane


def values_of(texts: list[str | None]) -> Values:
    lines = Lines(pa.array([text or "" for text in texts]))
    absent = np.array([text is None for text in texts])
    return Values(lines, lines.starts, lines.ends, absent)


@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_every_column_reads_a_value_as_where_it_stands(share: float) -> None:
    draw = random.Random(5)
    words = [w for w in (*INTEGERS, *OTHERS) if len(w.encode()) <= 8]
    texts = [None if draw.random() < share else draw.choice(words) for _ in range(3 * FEWEST)]
    values = values_of(texts)
    few = distinct(values)
    assert few is not None
    assert few[1].to_pylist() == [
        None if text is None else [*dict.fromkeys(t for t in texts if t is not None)].index(text)
        for text in texts
    ]
    for column in lane(EVERYTHING)._columns:
        read, plain = column.read_all(values)
        for first in range(0, len(texts), FEWEST - 1):
            part = slice(first, first + FEWEST - 1)
            alone, alone_plain = column.read_all(values_of(texts[part]))
            assert read[part].equals(alone), column.name
            assert plain[part].tolist() == alone_plain.tolist(), column.name


def test_values_that_are_long_few_or_mostly_different_are_read_where_they_stand() -> None:
    many: list[str | None] = ["a"] * FEWEST
    assert distinct(values_of(many)) is not None
    assert distinct(values_of(many[1:])) is None
    assert distinct(values_of([*many, "123456789"])) is None
    assert distinct(values_of([str(n) for n in range(FEWEST)])) is None
    assert distinct(values_of([*many, *(str(n) for n in range(2 * FEWEST))])) is None
    # A word ends with zero bytes, so a text that does is not told from a shorter one.
    assert distinct(values_of([*many, "a\0"])) is None
