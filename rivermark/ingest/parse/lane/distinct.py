"""Values that repeat are read once: codes and amounts of thousands of rows have few texts.

A reader looks at each value for itself, so what it makes of a text holds wherever the text stands.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.values import Values

SHORT: Final = 8
"""Bytes of a value that is compared with others: a word."""
FEWEST: Final = 1_024
"""Rows from which on it is worth to look which values repeat."""
SHARE: Final = 2
"""Of more than one different value in so many rows each is read where it stands."""
SAMPLE: Final = 256


def distinct(values: Values) -> tuple[Values, pa.Array] | None:
    """The different values, and which of them each row has: none where the value is absent.

    None where that is not worth it, or cannot be told from a word: of values that are longer, and
    where any text holds a zero byte.
    """
    count = len(values.starts)
    if count < FEWEST or values.lengths.max() > SHORT or values.lines.has_zeros:
        return None
    words = values.words(1)[0]
    sample = words[:: count // SAMPLE]
    if len(np.unique(sample)) * SHARE > len(sample):
        return None
    coded = pa.array(words, mask=values.absent).dictionary_encode()
    different = len(coded.dictionary)
    if different * SHARE > count:
        return None
    # Codes are given in the order of the rows, so the first rows that have them stand in order too.
    first = np.empty(different + 1, np.int64)
    codes = pc.fill_null(coded.indices, different).to_numpy()
    first[codes[::-1]] = np.arange(count - 1, -1, -1)
    rows = first[:different]
    none = np.zeros(different, np.bool_)
    some = Values(values.lines.take(rows), values.starts[rows], values.ends[rows], none)
    return some, coded.indices
