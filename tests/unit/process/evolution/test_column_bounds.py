"""M054: rows whose numbers their column cannot hold, in tests and in a stream's dead letters."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

from rivermark.process import ColumnType, Context, KeyedProcess, Millis
from rivermark.process.errors import Misuse, ProcessError
from rivermark.process.evolution.column_bounds import bound_of
from rivermark.testing import ProcessHarness


class Paid(msgspec.Struct, frozen=True):
    card: str
    at: Millis
    amount: Decimal


class Total(msgspec.Struct, frozen=True):
    card: str
    amount: Annotated[Decimal, ColumnType("decimal(12,2)")] | None
    number: Annotated[int, ColumnType("int")] = 0


class Doubled(KeyedProcess[Paid, Total]):
    key = "card"
    time = "at"

    def on_event(self, event: Paid, ctx: Context[Total]) -> None:
        ctx.emit(Total(ctx.key, event.amount * 2))


def test_m054_the_harness_refuses_a_row_that_its_column_cannot_hold() -> None:
    harness = ProcessHarness(Doubled())
    harness.feed(Paid("a", 0, Decimal("4999999999.99")))
    with pytest.raises((Misuse, ProcessError), match=r"'amount' is 19999999999.98, and its column"):
        harness.feed(Paid("a", 1, Decimal("9999999999.99")))


def test_m054_such_a_row_is_a_dead_letter_and_the_others_are_written() -> None:
    class WithDeadLetters(Doubled):
        dead_letter = True

    harness = ProcessHarness(WithDeadLetters())
    harness.feed([Paid("a", 0, Decimal("9999999999.99")), Paid("b", 1, Decimal(1))])

    assert [row.card for row in harness.outputs()] == ["b"]
    [dead] = harness.dead_letters()
    assert "has no room for it" in dead.message


@pytest.mark.parametrize(
    ("column", "value", "fits"),
    [
        ("decimal(12,2)", Decimal("9999999999.99"), True),
        ("decimal(12,2)", Decimal("9999999999.994"), True),
        ("decimal(12,2)", Decimal("9999999999.995"), False),
        ("decimal(12,2)", Decimal("-1e10"), False),
        ("decimal(12,2)", Decimal("1e1000000"), False),
        ("decimal(12,2)", Decimal("NaN"), False),
        ("decimal(38,18)", 10**20, False),
        ("int", 2**31, False),
        ("int", -(2**31), True),
        ("smallint", 2**15 - 1, True),
        ("long", 2**63, True),
    ],
)
def test_a_bound_is_that_of_the_column(column: str, value: Any, fits: bool) -> None:
    bound = bound_of(column)
    if fits:
        assert bound is None or bound.check("n", value) is None  # type: ignore[func-returns-value]
    else:
        assert bound is not None
        with pytest.raises(Misuse, match="'n' is "):
            bound.check("n", value)
