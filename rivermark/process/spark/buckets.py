"""The buckets that keys fall into, and the labels by which Spark spreads them evenly."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from typing import Any, Final

import msgspec

DEFAULT_BUCKETS: Final = 32
"""Few, because each costs round trips a batch; enough for as many cores."""
ROWS: Final = "rows"
"""The column in which all rows of a bucket travel."""

_SEED: Final = 42
_MASK: Final = 0xFFFFFFFF


def bucket_labels(buckets: int, partitions: int) -> list[int]:
    """A label for each bucket, such that every shuffle partition gets as many buckets.

    Spark places a row by a hash of its grouping column; of 32 numbers in a row one of two
    partitions would get 20.
    """
    labels: list[int | None] = [None] * buckets
    wanted: list[list[int]] = [list(range(p, buckets, partitions))[::-1] for p in range(partitions)]
    left = buckets
    for label in count():
        waiting = wanted[murmur3(label) % partitions]
        if waiting:
            labels[waiting.pop()] = label
            left -= 1
        if not left:
            break
    return [label for label in labels if label is not None]


def murmur3(value: int) -> int:
    """Spark's hash of an int column, signed as there: Python's modulo of it is Spark's `pmod`."""
    k = (value * 0xCC9E2D51) & _MASK
    k = ((k << 15) | (k >> 17)) & _MASK
    h = _SEED ^ ((k * 0x1B873593) & _MASK)
    h = ((h << 13) | (h >> 19)) & _MASK
    h = ((h * 5 + 0xE6546B64) & _MASK) ^ 4
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _MASK
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def bucket_of(key: Any, buckets: int) -> int:
    """The bucket of a key that only Python knows: the same in every process and version.

    Keys that are equal have one bucket: 1.5 and 1.50, and one instant in two zones.
    """
    h = 2166136261
    for byte in msgspec.msgpack.encode(_canonical(key), order="deterministic"):
        h = ((h ^ byte) * 16777619) & _MASK
    return (h ^ (h >> 15)) % buckets


def _canonical(key: Any) -> Any:
    match key:
        case Decimal():
            return key.normalize() if key else Decimal(0)
        case datetime() if key.tzinfo is not None:
            return key.astimezone(UTC)
        case tuple():
            return tuple(map(_canonical, key))
        case msgspec.Struct():
            fields = {name: getattr(key, name) for name in key.__struct_fields__}
            return msgspec.structs.replace(key, **{n: _canonical(v) for n, v in fields.items()})
        case _:
            return key
