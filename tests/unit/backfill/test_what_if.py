"""Parameters by name: what a build takes, what a text means, which code may be named."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from assets.taxi.long_rides import LIMIT, LONG_RIDES
from rivermark import Stream
from rivermark.backfill.code_version import code_of, underlying
from rivermark.backfill.what_if import altered
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.parameters import Parameter, parsed, shown
from tests.unit.backfill.conftest import STREAM


def at_least(rows: Any, least: Decimal, times: int = 1) -> Any:
    return (rows, least, times)


def other_code(rows: Any) -> Any:
    return ("other", rows)


TIPPED = replace(STREAM, build=at_least, parameters={"least": Decimal("0.50"), "times": 2})


def built(stream: Stream) -> Any:
    return stream.build("rows")


@pytest.mark.parametrize(
    ("text", "like", "value"),
    [
        ("7", 1, 7),
        ("0.75", Decimal("0.50"), Decimal("0.75")),
        ("1.5", 0.5, 1.5),
        ("false", True, False),
        ("90min", timedelta(hours=2), timedelta(minutes=90)),
        ("250ms", timedelta(hours=2), timedelta(milliseconds=250)),
        ("cash", "card", "cash"),
    ],
)
def test_a_text_is_a_value_of_the_declared_kind(
    text: str, like: Parameter, value: Parameter
) -> None:
    found = parsed("p", text, like)
    assert found == value
    assert type(found) is type(like)
    assert parsed("p", shown(found), like) == value


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("x", 1),
        ("1.5", 1),
        ("many", Decimal(1)),
        ("yes", True),
        ("90", LIMIT),
        ("", 0.5),
        ("infh", LIMIT),
    ],
)
def test_a_text_of_another_kind_is_refused_with_the_declared_value(
    text: str, like: Parameter
) -> None:
    with pytest.raises(RivermarkError, match="it is declared as"):
        parsed("p", text, like)


def test_a_build_is_given_its_parameters_and_others_for_a_what_if() -> None:
    assert built(TIPPED) == ("rows", Decimal("0.50"), 2)
    assert built(altered(TIPPED, {"least": "1.00"})) == ("rows", Decimal("1.00"), 2)
    assert built(TIPPED) == ("rows", Decimal("0.50"), 2)


def test_a_parameter_that_the_build_does_not_take_is_refused_at_declaration() -> None:
    with pytest.raises(DeclarationError, match="'test/tips': its build takes no parameter 'most'"):
        replace(STREAM, build=at_least, parameters={"most": 3})


def test_a_process_function_is_made_with_the_parameter() -> None:
    changed = altered(LONG_RIDES, {"limit": "90min"})

    assert changed.build.make().limit == 90 * 60 * 1000  # type: ignore[attr-defined]
    assert LONG_RIDES.build.make().limit == 120 * 60 * 1000  # type: ignore[attr-defined]
    assert code_of(LONG_RIDES).startswith("assets.taxi.long_rides:LongRides@")


def test_other_code_of_the_same_package_may_be_named() -> None:
    named = f"{__name__}:other_code"

    assert built(altered(TIPPED, {"build": named})) == ("other", "rows")
    assert code_of(altered(TIPPED, {"build": named})).startswith(f"{named}@")


@pytest.mark.parametrize(
    "named",
    [
        "os:system",
        "assets.taxi.tips:tips_per_driver",
        "tests.unit.backfill.test_what_if",
        "tests.unit.backfill.test_what_if:nothing",
        "tests.unit.backfill.test_what_if:TIPPED",
        "tests.unit.backfill.test_what_if:replace",
        "tests.unit.backfill.test_what_if:__name__",
        "tests.no.such.module:build",
        "__import__('os').system('x')",
    ],
)
def test_nothing_else_is_run(named: str) -> None:
    with pytest.raises(RivermarkError, match="build "):
        altered(TIPPED, {"build": named})


def test_the_fingerprint_is_that_of_the_function_behind() -> None:
    assert underlying(TIPPED.build) is at_least
    assert code_of(TIPPED) == code_of(altered(TIPPED, {"times": "3"}))
