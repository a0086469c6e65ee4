"""Configuration of runs, checked before anything is started."""

from collections.abc import Callable
from datetime import date, timedelta
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Self

import dagster as dg
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from rivermark.backfill.as_of import parse_as_of, parse_day
from rivermark.model.errors import RivermarkError
from rivermark.runtime.query.recompute import AsOf


def optional_day(text: str) -> date | None:
    """A day like 2020-01-01; None without text. Raises RivermarkError."""
    return parse_day(text) if text else None


def _a_day(text: str) -> str:
    try:
        optional_day(text)
    except RivermarkError as error:
        raise ValueError(str(error)) from None
    return text


DayText = Annotated[str, AfterValidator(_a_day)]
"""A day like 2020-01-01, or nothing."""


class Mode(Enum):
    """The mode in which a run hosts its streams."""

    bounded = "bounded"
    continuous = "continuous"


LIMITS: Final[dict[str, tuple[Callable[[float], bool], str]]] = {
    "report_seconds": (
        lambda seconds: seconds >= 5,
        "a run cannot report every {} seconds: give 5 or more; each report is an event in "
        "Dagster's log, 60 is a good pace",
    ),
    "trigger_seconds": (
        lambda seconds: seconds > 0,
        "no time between batches is {} seconds long: give more than 0, or leave trigger_seconds "
        "out to take the platform's setting",
    ),
    "check_seconds": (
        lambda seconds: seconds >= 30,
        "checks every {} seconds would crowd out the streams: 30 or more",
    ),
    "suite_seconds": (
        lambda seconds: seconds == 0 or seconds >= 60,
        "suites every {} seconds: give 60 or more, or 0 for never",
    ),
}
"""Which values are allowed, and what is said of others."""


class HostConfig(dg.Config):
    """Settings of a run of a group: `bounded` drains what is there, `continuous` goes on."""

    mode: Mode = Field(
        default=Mode.bounded,
        description="bounded: drain what is there, then end. continuous: go on until cancelled.",
    )
    streams: list[str] = Field(
        default=[],
        description="Names of streams, such as taxi/rides. Empty: those of the selected assets.",
    )
    report_seconds: float = Field(
        default=60,
        description="How often a continuous run reports its numbers to the assets; 5 or more.",
    )
    trigger_seconds: float | None = Field(
        default=None,
        description="Time between two batches of a continuous stream; above 0. Empty: as set.",
    )

    check_seconds: float = Field(
        default=300,
        description="How often a continuous run evaluates its checks; 30 or more.",
    )
    suite_seconds: float = Field(
        default=3600,
        description="How often it runs Great Expectations suites, in its own engine; 0: never.",
    )

    @field_validator(*LIMITS)
    @classmethod
    def _within_limits(cls, value: float | None, info: ValidationInfo) -> float | None:
        allows, advice = LIMITS[str(info.field_name)]
        if value is not None and not allows(value):
            raise ValueError(advice.format(value))
        return value

    @model_validator(mode="after")
    def _heeded(self) -> Self:
        """Refuse what only a continuous run heeds: a run that drains reports when it is done."""
        for name in ("report_seconds", "check_seconds", "suite_seconds"):
            default = type(self).model_fields[name].default
            if self.mode is Mode.bounded and getattr(self, name) != default:
                raise ValueError(
                    f"{name} goes with mode continuous: leave it out, since a bounded run reports "
                    "when it ends"
                )
        return self

    @property
    def report_every(self) -> timedelta:
        """`report_seconds` as a span."""
        return timedelta(seconds=self.report_seconds)

    @property
    def check_every(self) -> timedelta:
        """`check_seconds` as a span."""
        return timedelta(seconds=self.check_seconds)

    @property
    def suites_every(self) -> timedelta | None:
        """`suite_seconds` as a span; None for never."""
        return timedelta(seconds=self.suite_seconds) if self.suite_seconds else None


class RecomputeConfig(dg.Config):
    """Versions of the inputs that a recompute reads."""

    as_of: str = Field(
        default="",
        description=(
            "Empty: the newest versions. A moment in UTC (2026-03-02T12:00Z), a version (17), or "
            'versions by table ({"taxi/rides": 17}).'
        ),
    )

    @field_validator("as_of")
    @classmethod
    def _understood(cls, text: str) -> str:
        try:
            parse_as_of(text)
        except RivermarkError as error:
            raise ValueError(f"as_of {error}") from None
        return text

    def pinned(self) -> AsOf:
        """`as_of` as the library takes it."""
        return parse_as_of(self.as_of)


def inside(root: Path, relative: str) -> Path:
    """The path that `relative` names below `root`; a path that would leave it is refused.

    Raises RivermarkError. Links are followed first, so that none leads out either.
    """
    parts = PurePosixPath(relative).parts
    path = (root / relative).resolve() if "\x00" not in relative else root
    if not relative or ".." in parts or path == root or not path.is_relative_to(root.resolve()):
        raise RivermarkError(
            f"path {relative!r} lies outside of {root}: give a path relative to it, without '..', "
            "or set RIVERMARK_HOME to the folder that shall hold it"
        )
    return path
