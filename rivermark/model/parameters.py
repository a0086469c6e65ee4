"""Values that a stream's build takes by name, so that another one can be tried over past days."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, Final

from rivermark.model.errors import DeclarationError, WrongUse
from rivermark.model.time import MICROSECOND

Parameter = bool | int | float | Decimal | str | timedelta

UNITS: Final = {"ms": 10**3, "s": 10**6, "min": 60 * 10**6, "h": 3600 * 10**6, "d": 86_400 * 10**6}
"""Microseconds of each unit of a span."""
LONGEST: Final = timedelta(days=36_500)
"""Event times stay within what Spark and Python can represent, so much later or earlier."""
LARGEST: Final = 2**63 - 1
DIGITS: Final = 38
"""Of a decimal in Spark, before and after the point together."""
TRUTHS: Final = {"true": True, "false": False}


def with_parameters(build: Callable[..., Any], values: Mapping[str, Any]) -> Callable[..., Any]:
    """The build with the values filled in; DeclarationError for a name that it does not take."""
    if not values:
        return build
    for name in values:
        if not takes(build, name):
            known = ", ".join(inspect.signature(build).parameters)
            raise DeclarationError(f"its build takes no parameter '{name}'; it takes {known}")
    return partial(build, **values)


def takes(build: Callable[..., Any], name: str) -> bool:
    """Returns True if the build can be given a value of that name."""
    known = inspect.signature(build).parameters
    return name in known or any(p.kind is p.VAR_KEYWORD for p in known.values())


def parsed(name: str, text: str, like: Parameter) -> Parameter:
    """A text as a value of the kind that was declared, which Spark can compute with.

    Raises WrongUse with the parameter, what is expected of it, and its bounds.
    """
    expected, read = next(READERS[kind] for kind in READERS if isinstance(like, kind))
    try:
        value = read(text)
        if isinstance(value, timedelta) and isinstance(like, timedelta):
            _check_span(value, like)
    except (ArithmeticError, KeyError, ValueError):
        raise WrongUse(
            f"parameter {name}: {text!r} is not {expected}; the declared value is {shown(like)}"
        ) from None
    return value


def span(text: str) -> timedelta:
    """A span such as `90s`, `5min`, `2h`, in whole microseconds; ValueError for anything else."""
    for unit in sorted(UNITS, key=len, reverse=True):
        if text.endswith(unit):
            exact = Decimal(text.removesuffix(unit)) * UNITS[unit]
            if exact % 1:
                raise ValueError(text)
            return int(exact) * MICROSECOND
    raise ValueError(text)


def _check_span(value: timedelta, like: timedelta) -> None:
    """Refuse a span that is too long, and one that is not above 0 where the declared one is."""
    if abs(value) > LONGEST or (like > timedelta(0) >= value):
        raise ValueError(value)


def _whole(text: str) -> int:
    value = int(text)
    if not -LARGEST - 1 <= value <= LARGEST:
        raise ValueError(text)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _decimal(text: str) -> Decimal:
    """Written out, since Spark knows no scale below 0, such as that of 1e5."""
    value = Decimal(text)
    if not value.is_finite() or max(value.adjusted() + 1, 0) - _exponent(value) > DIGITS:
        raise ValueError(text)
    return Decimal(format(value, "f"))


def _exponent(value: Decimal) -> int:
    """The power of ten of its last digit, 0 for a whole number."""
    return min(int(value.as_tuple().exponent), 0)


def _text(text: str) -> str:
    text.encode()
    return text


READERS: Final[dict[type, tuple[str, Callable[[str], Parameter]]]] = {
    bool: ("true or false", lambda text: TRUTHS[text.lower()]),
    int: (f"a whole number between {-LARGEST - 1} and {LARGEST}", _whole),
    float: ("a finite number", _finite),
    Decimal: (f"a decimal number such as 0.50, of at most {DIGITS} digits", _decimal),
    timedelta: (
        f"a span such as 90s, 5min, 2h or 1d, above 0 and at most {LONGEST.days}d, in whole "
        "microseconds",
        span,
    ),
    str: ("text that UTF-8 can encode", _text),
}
"""By the kind of the declared value: what is expected, and how it is read. `bool` is an `int` too,
and comes before it."""


def shown(value: Parameter) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return f"{Decimal(value // MICROSECOND).scaleb(-6).normalize():f}s"
    return str(value)
