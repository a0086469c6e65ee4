"""Typed columns of words: texts as they are, and booleans."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.lane.values import Values

TRUE = (b"true", b"True", b"t", b"yes", b"y", b"1")
FALSE = (b"false", b"False", b"f", b"no", b"n", b"0")


def booleans(values: Values) -> tuple[pa.Array, Mask]:
    """Words for true and false in their usual spellings; and which values are such."""
    word, lengths = values.words(1)[0], values.lengths
    true, false = (_any(word, lengths, words) for words in (TRUE, FALSE))
    good = true | false
    return pa.array(true, mask=~good), good


def _any(words: np.ndarray, lengths: np.ndarray, wanted: tuple[bytes, ...]) -> Mask:
    matching: Mask = np.zeros(len(words), np.bool_)
    for each in wanted:
        own = words == np.frombuffer(each.ljust(8, b"\0"), np.uint64)[0]
        if own.any():
            matching |= own & (lengths == len(each))
    return matching


def texts(values: Values) -> tuple[pa.Array, Mask]:
    """The texts, but for those with spaces around them: they may be words for 'no value'."""
    data = values.lines.bytes
    spaced = (data[values.starts] == 32) | (data[np.maximum(values.ends - 1, 0)] == 32)
    good = ~(spaced & (values.lengths > 0))
    return values.texts(good & ~values.absent), good
