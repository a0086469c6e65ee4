"""A table with a column of each type and of odd names, and rows of the values at their edges."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, TimestampNTZType

from rivermark import Daily, Table
from rivermark.model.ddl import struct_type
from tests.unit.quality.planted import arrow_schema

EDGES: Final = Table(
    name="test/edges",
    schema=struct_type(
        "long long, int int, tiny tinyint, money decimal(12,2), fine decimal(38,20), "
        "finest decimal(38,37), single float, double double, text string, truth boolean, "
        "day date, at timestamp, later timestamp, items array<int>, "
        "place struct<lat: double>, end int, limit int, window int"
    )
    .add("local", TimestampNTZType())
    .add("a b", StringType())
    .add("Größe", IntegerType()),
    description="Values at the edges of their types.",
    days=Daily("at", date(2019, 3, 1)),
)
ARROW: Final = arrow_schema(EDGES.schema)

NOON: Final = datetime(2019, 3, 1, 12, tzinfo=UTC)
TIMES: Final = (
    NOON,
    NOON + timedelta(microseconds=1),
    NOON + timedelta(hours=1),
    NOON + timedelta(days=1),
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1582, 10, 14, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
)
WHOLE: Final = (0, 1, -1, 2, 3, 5, 100)
DOUBLES: Final = (
    *(0.0, -0.0, 0.1, 0.30000000000000004, 1.0, 2.0, 16777216.0, 16777217.0, 1e308, -1e308),
    *(5e-324, 9007199254740992.0, math.inf, -math.inf, math.nan),
)
TEXTS: Final = (
    *("", "a", "b", "A", "ab", "a b", "a\vb", "a\rb", "a\nb", "a\u0085b", "a\u2028b", "a\u00a0b"),
    *("CARD", "CARD\r", "CARD\n", "card", "k", "\u212a", "\u00e4", "\u00c4", "\u00e9", "e\u0301"),
    *("\U0001f600", "\u0000", "\\", "it's", "%", "a_b", "1", "1.5", "\ufb01", "\u0130", "\u00df"),
)
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "long": (*WHOLE, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)),
    "int": (*WHOLE, 2**31 - 1, -(2**31), 16777217),
    "tiny": (0, 1, -1, 127, -128),
    "money": tuple(map(Decimal, ("0.00", "0.10", "-0.01", "9999999999.99", "2.50", "1.00"))),
    "fine": tuple(
        map(Decimal, ("0", "0.1", "0.10000000000000000001", "999999999999999999", "1", "-1"))
    ),
    "finest": tuple(
        map(Decimal, ("0", "0.1", "9." + "9" * 37, "-9." + "9" * 37, "0." + "0" * 36 + "1"))
    ),
    "single": DOUBLES[:8] + DOUBLES[-3:],
    "double": DOUBLES,
    "text": TEXTS,
    "truth": (True, False),
    "day": (
        date(2019, 3, 1),
        date(2019, 3, 2),
        date(1500, 1, 1),
        date(1, 1, 1),
        date(9999, 12, 31),
    ),
    "at": TIMES,
    "later": TIMES,
    "local": tuple(time.replace(tzinfo=None) for time in TIMES),
    "items": ([], [1], [1, None, 2]),
    "place": ({"lat": 1.5}, {"lat": None}, {"lat": math.nan}),
    "end": WHOLE,
    "limit": WHOLE,
    "window": WHOLE,
    "a b": TEXTS[:8],
    "Größe": WHOLE,
}


def edge_rows(count: int = 160, *, seed: int = 15) -> pa.Table:
    """Rows in which every value occurs, with others of a random choice; some are empty."""
    chance = random.Random(seed)
    rows = [
        {
            name: values[n]
            if n < len(values)
            else None
            if chance.random() < 0.15
            else chance.choice(values)
            for name, values in VALUES.items()
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=ARROW)
