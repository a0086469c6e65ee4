"""Values that a stream's build takes by name, so that another one can be tried over past days."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

from rivermark.model.errors import DeclarationError, RivermarkError

Parameter = bool | int | float | Decimal | str | timedelta

UNITS: Final = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}
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
    """Whether the build can be given a value of that name."""
    known = inspect.signature(build).parameters
    return name in known or any(p.kind is p.VAR_KEYWORD for p in known.values())


def parsed(name: str, text: str, like: Parameter) -> Parameter:
    """A text as a value of the kind that was declared; RivermarkError says what is expected."""
    try:
        if isinstance(like, bool):
            return TRUTHS[text.lower()]
        if isinstance(like, int):
            return int(text)
        if isinstance(like, float):
            return float(text)
        if isinstance(like, Decimal):
            return Decimal(text)
        if isinstance(like, timedelta):
            return span(text)
    except (ValueError, KeyError, InvalidOperation, OverflowError):
        raise RivermarkError(
            f"parameter {name}: {text!r} is not {EXPECTED[type(like)]}; it is declared as "
            f"{shown(like)}"
        ) from None
    return text


EXPECTED: Final[dict[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Decimal: "a decimal number such as 0.50",
    timedelta: "a span such as 90s, 5min, 2h or 1d",
}


def span(text: str) -> timedelta:
    """A span such as `90s`, `5min`, `2h`; ValueError for anything else."""
    for unit in sorted(UNITS, key=len, reverse=True):
        if text.endswith(unit):
            return timedelta(seconds=float(text.removesuffix(unit)) * UNITS[unit])
    raise ValueError(text)


def shown(value: Parameter) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return str(value)
