"""Seeded tables of any columns and values, and conditions at the bounds of their files."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

NAMES: Final = ["v", ".v", "a.b", "größe", "野家", "𠮷", "select", "Q'", 'q"', "x-1", "%20", "$"]
LETTERS: Final = 'abzé\u2028\x85野𠮷𪚥\U0010ffff\x00"\\'

Values = Callable[[random.Random], Any]


def _text(dice: random.Random) -> str:
    longest = dice.choice([3, 40])
    return "".join(dice.choice(LETTERS) for _ in range(dice.randrange(longest)))


def _float(dice: random.Random) -> float:
    odd = [math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1.7e308]
    return dice.choice(odd) if dice.random() < 0.1 else dice.uniform(-1e3, 1e3)


def _float32(dice: random.Random) -> float:
    odd = [math.nan, math.inf, -0.0, 2.0**-149, 0.1]
    return dice.choice(odd) if dice.random() < 0.1 else dice.randrange(-800, 800) / 8


def _moment(dice: random.Random) -> datetime:
    start = datetime(dice.choice([1, 1582, 1969, 2024, 9998]), 1, 1, tzinfo=UTC)
    return start + timedelta(microseconds=dice.randrange(10**13))


KINDS: Final[list[tuple[pa.DataType, Values]]] = [
    (pa.int8(), lambda dice: dice.randrange(-128, 128)),
    (pa.int32(), lambda dice: dice.randrange(-(2**31), 2**31)),
    (pa.int64(), lambda dice: dice.choice([-(2**63), 2**63 - 1, dice.randrange(2**60)])),
    (pa.bool_(), lambda dice: dice.random() < 0.5),
    (pa.float64(), _float),
    (pa.float32(), _float32),
    (pa.string(), _text),
    (pa.string(), _text),
    (pa.date32(), lambda dice: date(dice.choice([1, 1970, 9998]), 1, 1 + dice.randrange(28))),
    (pa.timestamp("us", "UTC"), _moment),
    (pa.decimal128(9, 2), lambda dice: Decimal(dice.randrange(-(10**9) + 1, 10**9)).scaleb(-2)),
    (pa.decimal128(38, 4), lambda dice: Decimal(dice.randrange(10**38)).scaleb(-4)),
    (pa.binary(), lambda dice: dice.randbytes(4)),
    (pa.list_(pa.int64()), lambda dice: [dice.randrange(9)] * dice.randrange(3)),
    (
        pa.struct([(".x", pa.int64()), ("y", pa.string())]),
        lambda dice: {".x": dice.randrange(9), "y": _text(dice)},
    ),
]

OPERATORS: Final = {"=": operator.eq, ">=": operator.ge, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a value that one of the files holds."""

    column: str
    sign: str
    value: Any

    def holds(self, value: Any) -> bool:
        """Whether a row with this value of the column is to be found."""
        return value is not None and bool(self.compare(value, self.value))

    def compare(self, column: Any, value: Any) -> Any:
        """The comparison, of values or of an engine's expressions."""
        return OPERATORS[self.sign](column, value)


def random_files(dice: random.Random) -> list[pa.Table]:
    """The rows of some files of one table; `id` numbers them through."""
    names = dice.sample(NAMES, dice.randrange(2, 6))
    kinds = [dice.choice(KINDS) for _ in names]
    schema = pa.schema(
        [("id", pa.int64()), *((n, k) for n, (k, _) in zip(names, kinds, strict=True))]
    )
    files = []
    first = 0
    for _ in range(3):
        count = dice.randrange(1, 6)
        values: list[list[Any]] = [list(range(first, first + count))]
        for _, draw in kinds:
            empty = dice.choice([0.0, 0.3, 1.0 if dice.random() < 0.2 else 0.0])
            values.append([None if dice.random() < empty else draw(dice) for _ in range(count)])
        arrays = [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)]
        files.append(pa.table(arrays, schema=schema))
        first += count
    return files


def conditions_of(files: list[pa.Table], dice: random.Random) -> Iterator[Condition]:
    """Conditions at the least and the greatest value of each column in each file."""
    for rows in files:
        for field in rows.schema:
            if pa.types.is_nested(field.type) or pa.types.is_binary(field.type):
                continue
            values = [v for v in rows[field.name].to_pylist() if v is not None and v == v]
            for bound in {min(values), max(values)} if values else set():
                for sign in ("=", dice.choice([">=", "<=", "<"])):
                    yield Condition(field.name, sign, bound)


def expected(files: list[pa.Table], condition: Condition) -> list[int]:
    """The `id`s of the rows that a condition is true of, ascending."""
    rows = pa.concat_tables(files)
    values = zip(rows["id"].to_pylist(), rows[condition.column].to_pylist(), strict=True)
    return sorted(i for i, value in values if condition.holds(value))


def flipped(content: bytes, dice: random.Random, times: int) -> Iterator[bytes]:
    """A Parquet file's content so many times, each with another bit of its pages flipped."""
    footer = int.from_bytes(content[-8:-4], "little") + 8
    for place in dice.sample(range(32, 8 * (len(content) - footer)), times):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)
