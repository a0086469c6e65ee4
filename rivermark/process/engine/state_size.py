"""Size of stored state, and the keys that make it so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from rivermark.model.errors import DeclarationError
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.errors import StateTooLarge

_NAMED: Final = 5


@dataclass(frozen=True)
class Limits:
    """Limits of stored state, in bytes: that of a bucket, and the record of one key.

    A batch that touches many of a bucket's keys reads and writes all of it, so a large one makes
    batches slow; use more buckets, a lifetime (TTL) or timers that clear the state.
    """

    bucket: int = 64 * 1024 * 1024
    key: int | None = None

    def __post_init__(self) -> None:
        if self.bucket <= 0 or (self.key is not None and self.key <= 0):
            raise DeclarationError("limits of state are numbers of bytes above 0")


def record_sizes(bucket: Bucket, codec: Codec) -> dict[Any, int]:
    """Bytes of each key's record, largest first."""
    sizes = {
        key: len(codec.encode_record(record) if isinstance(record, list) else memoryview(record))
        for key, record in bucket.records.items()
    }
    return dict(sorted(sizes.items(), key=lambda each: -each[1]))


def check_sizes(bucket: Bucket, size: int, codec: Codec, limits: Limits) -> None:
    """Raise StateTooLarge when a limit is passed, naming the largest keys.

    A key can only be too large in a bucket that is, so nothing is counted below the key's limit.
    """
    if size > limits.bucket:
        bucket.read_all()
        raise StateTooLarge(
            f"process '{codec.declaration.name}': a bucket of {len(bucket.records):,} keys has "
            f"{size:,} bytes of state, more than {limits.bucket:,}; the largest keys: "
            f"{_largest(record_sizes(bucket, codec))}"
        )
    if limits.key is not None and size > limits.key:
        touched = {key: bucket.records[key] for key in bucket.touched if key in bucket.records}
        sizes = {key: len(codec.encode_record(record)) for key, record in touched.items()}
        too_large = {key: each for key, each in sizes.items() if each > limits.key}
        if too_large:
            raise StateTooLarge(
                f"process '{codec.declaration.name}': keys with more than {limits.key:,} bytes of "
                f"state: {_largest(dict(sorted(too_large.items(), key=lambda each: -each[1])))}"
            )


def _largest(sizes: dict[Any, int]) -> str:
    return ", ".join(f"{key!r} ({size:,})" for key, size in list(sizes.items())[:_NAMED])
