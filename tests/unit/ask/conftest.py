"""A table of sales in a lake of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from rivermark.settings import Settings

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SALES = pa.schema(
    [
        ("sale", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(12, 2)),
        ("tags", pa.list_(pa.string())),
    ]
)
Write = Callable[..., str]


def sale(number: int) -> dict[str, object]:
    at = NOON.replace(minute=number % 60)
    return {"sale": number, "at": at, "amount": Decimal(number) / 4, "tags": ["a", str(number)]}


def append_sales(
    settings: Settings, *numbers: int, name: str = "shop/sales", mode: str = "append"
) -> str:
    """One commit of sales to a table; returns its folder."""
    path = settings.lake().path(name)
    rows = pa.Table.from_pylist([sale(number) for number in numbers], SALES)
    write_deltalake(path, rows, mode=mode)  # type: ignore[call-overload]
    return path


@pytest.fixture
def write(settings: Settings) -> Write:
    """Append a commit of sales to a table; returns its folder."""
    return partial(append_sales, settings)
