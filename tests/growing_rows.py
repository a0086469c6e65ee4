"""Rows whose every column grows with their number, so that each filter has one right answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

FIRST = datetime(2024, 3, 1, tzinfo=UTC)


def growing(n: int) -> dict[str, Any]:
    """The n-th row; microseconds, digits beyond a float's, and long texts tell rows apart."""
    return {
        "id": n,
        "at": FIRST + timedelta(microseconds=1_000_001 * n),
        "day": FIRST.date() + timedelta(days=n),
        "fare": Decimal(n) / 100,
        "large": Decimal(f"12345678901234567890.{n:04d}"),
        "degrees": n / 3,
        "zone": "z" * 40 + f"{n:04d}",
    }
