"""Parameters by name: what a build takes, what a text means, which code may be named."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from assets.taxi.long_rides import LIMIT, LONG_RIDES
from rivermark import Stream
from rivermark.backfill.reprocess import altered
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.parameters import Parameter, parsed, shown
from rivermark.runtime.code_version import code_of, underlying
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
        ("1234567.000001s", timedelta(hours=2), timedelta(seconds=1234567, microseconds=1)),
        ("1e5", Decimal("0.50"), Decimal(100_000)),
        ("-5min", timedelta(0), timedelta(minutes=-5)),
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
    with pytest.raises(RivermarkError, match="the declared value is"):
        parsed("p", text, like)


@pytest.mark.parametrize(
    ("text", "like", "bounds"),
    [
        *(
            (text, Decimal("0.5"), "at most 38 digits")
            for text in ("NaN", "sNaN", "Infinity", "-inf")
        ),
        *((text, Decimal("0.5"), "at most 38 digits") for text in ("1e50", "1e-39", "1e999999")),
        ("9" * 39, Decimal(1), "at most 38 digits"),
        ("99999999999999999999999", 1, "between -9223372036854775808 and 9223372036854775807"),
        ("-9223372036854775809", 1, "between -9223372036854775808 and 9223372036854775807"),
        ("9" * 5000, 1, "a whole number between"),
        *((text, LIMIT, "above 0 and at most 36500d") for text in ("0s", "-5min", "-0.0s", "0d")),
        *((text, LIMIT, "in whole microseconds") for text in ("0.0000001s", "1.0000005s", "nans")),
        *((text, LIMIT, "at most 36500d") for text in ("36501d", "1e50h", "infd", "1e999999999s")),
        *((text, 0.5, "a finite number") for text in ("nan", "inf", "-Infinity", "1e400")),
        ("caf\udce9", "card", "text that UTF-8 can encode"),
    ],
)
def test_n069_a_value_out_of_range_is_refused_with_the_parameter_and_its_bounds(
    text: str, like: Parameter, bounds: str
) -> None:
    with pytest.raises(RivermarkError, match=r"^parameter limit: ") as refused:
        parsed("limit", text, like)
    assert bounds in str(refused.value)
    assert "the declared value is" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_nothing_to_change_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(RivermarkError, match=r"nothing to compare: give .*least=0\.50"):
        altered(TIPPED, {})


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


def test_n063_a_parameter_that_other_code_does_not_take_is_refused() -> None:
    with pytest.raises(RivermarkError, match="other_code' takes no parameter 'least'"):
        altered(TIPPED, {"build": f"{__name__}:other_code", "least": "1.00"})


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
