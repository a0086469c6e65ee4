"""Another parameter, or another build, tried over past days, beside what is published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from pyspark.sql import SparkSession

from rivermark.backfill.recompute import Order, rehearse
from rivermark.backfill.result import Reprocessing
from rivermark.model.errors import WrongUse
from rivermark.model.parameters import parsed, shown, takes
from rivermark.model.stream import Stream
from rivermark.runtime.code_version import underlying
from rivermark.settings import Settings

BUILD: Final = "build"
FUNCTION: Final = re.compile(r"([a-z]\w*(?:\.[a-z]\w*)*):([A-Za-z]\w*)")


def what_if(
    spark: SparkSession, settings: Settings, order: Order, changes: Mapping[str, str]
) -> Reprocessing:
    """Compute the days with the changes into side tables and compare with what is published.

    `changes` are declared parameters by name, or `build`: a function of the repository as
    `module:name`. Pin the inputs (`as_of`) to compare the change alone.
    """
    changed = replace(
        order, stream=altered(order.stream, changes), parameters=dict(sorted(changes.items()))
    )
    return rehearse(spark, settings, changed, kind="what-if")


def altered(stream: Stream, changes: Mapping[str, str]) -> Stream:
    """The stream with other parameters or another build; texts are parsed, nothing is evaluated."""
    if not changes:
        raise WrongUse(f"nothing to compare: give {_choices(stream)}")
    values = dict(stream.parameters)
    build = stream.build
    for name, text in changes.items():
        if name == BUILD:
            build = build_named(stream, text)
        elif name in values:
            values[name] = parsed(name, text, stream.parameters[name])
        else:
            raise WrongUse(f"'{stream.name}' has no parameter {name!r}: give {_choices(stream)}")
    if BUILD in changes:
        # Other code need not take what the declared build takes, but what is tried with it.
        for name in changes:
            if name != BUILD and not takes(build, name):
                raise WrongUse(f"build {changes[BUILD]!r} takes no parameter {name!r}")
        values = {name: value for name, value in values.items() if takes(build, name)}
    return replace(stream, build=build, parameters=values)


def build_named(stream: Stream, text: str) -> Any:
    """A function of the very package in which the stream's own build is; RivermarkError else."""
    home = str(getattr(underlying(stream.build), "__module__", "")).partition(".")[0]
    named = FUNCTION.fullmatch(text)
    if named is None or named[1].partition(".")[0] != home:
        raise WrongUse(
            f"build {text!r}: expected a function of '{home}', such as {home}.taxi.tips:other_tips"
        )
    try:
        build = getattr(import_module(named[1]), named[2])
    except (ImportError, AttributeError) as error:
        raise WrongUse(f"build {text!r}: {error}") from error
    owner = str(getattr(underlying(build), "__module__", ""))
    if not callable(build) or owner.partition(".")[0] != home:
        raise WrongUse(f"build {text!r} is not a function that '{home}' defines")
    return build


def _choices(stream: Stream) -> str:
    known = [f"{name}={shown(value)}" for name, value in stream.parameters.items()]
    if not known:
        return "build=MODULE:FUNCTION for other code, since it declares no parameters"
    return f"its parameters ({', '.join(known)}), or build=MODULE:FUNCTION for other code"
