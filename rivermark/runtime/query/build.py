"""Calling a stream's `build`: what it raises itself is an error of the declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.place import raised_at
from rivermark.model.plan_errors import plan_fault, plan_place
from rivermark.runtime.spark.engine_lost import engine_error

if TYPE_CHECKING:
    from rivermark.model.stream import Build


def apply_build(stream: str, build: Build, *frames: DataFrame) -> DataFrame:
    """The rows that `build` makes of its inputs.

    It is pure, so what it raises (a name that no column has, a wrong argument, a bug) it raises at
    each start. Errors of the bridge to Spark and of the disk pass through: those may pass.

    Raises:
        DeclarationError: `build` raised, or returns no DataFrame: with the name of the stream, the
            error, and the line of the code.
    """
    try:
        built = build(*frames)
    except PySparkException as error:
        if (lost := engine_error(error)) is not None:
            raise lost from None
        raise DeclarationError(f"stream '{stream}': its build fails: {plan_fault(error)}").at(
            plan_place(error)
        ) from error
    except (Py4JError, OSError, EOFError, RivermarkError):
        raise
    except Exception as error:
        kind, message = type(error).__name__, str(error).strip() or "no message"
        lines = message.splitlines()
        raise DeclarationError(
            f"stream '{stream}': its build raises {kind}: {lines[0]}. It would at each start: "
            "correct it, then start the stream"
        ).at(raised_at(error)) from error
    if not isinstance(built, DataFrame):
        raise DeclarationError(
            f"stream '{stream}': its build returns a {type(built).__name__} instead of a DataFrame"
        )
    return built
