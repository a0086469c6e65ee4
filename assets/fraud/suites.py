"""What is expected of logins and payments as they come in."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from rivermark.model import expectations as expect
from rivermark.model.suite import Suite

LOGINS_SUITE: Final = Suite(
    name="fraud/logins",
    expectations=(
        expect.between("number", 0),
        expect.matches_regex("country", "[A-Z][A-Z]", severity="warning"),
    ),
    # Nobody lands events unless asked to.
    may_be_empty=True,
)

PAYMENTS_SUITE: Final = Suite(
    name="fraud/payments",
    expectations=(
        expect.between("number", 0),
        expect.between("amount", Decimal("0.01")),
        expect.between("amount", Decimal("0.01"), 100_000, severity="warning"),
    ),
    may_be_empty=True,
)
