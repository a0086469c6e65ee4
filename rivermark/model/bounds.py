"""Bounds of the numbers and durations that declarations take."""

from __future__ import annotations

from datetime import timedelta

from rivermark.model.errors import DeclarationError


def check_share(declaration: str, **shares: float) -> None:
    """Refuse what is no share of the rows, by the arguments' names."""
    for name, value in shares.items():
        if not 0 <= value <= 1:
            raise DeclarationError(f"{declaration}: `{name}` must be between 0 and 1, got {value}")


def check_not_negative(declaration: str, **durations: timedelta | None) -> None:
    """Refuse durations below zero, by the arguments' names."""
    for name, value in durations.items():
        if value is not None and value < timedelta(0):
            raise DeclarationError(f"{declaration}: `{name}` must not be negative, got {value}")


def check_above_zero(declaration: str, **durations: timedelta | None) -> None:
    """Refuse durations of zero and below, by the arguments' names."""
    for name, value in durations.items():
        if value is not None and value <= timedelta(0):
            raise DeclarationError(f"{declaration}: `{name}` must be above zero, got {value}")
