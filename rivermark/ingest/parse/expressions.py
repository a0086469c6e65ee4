"""The expressions of declarations, each tried alone: which of them Spark cannot make a plan of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import BooleanType, DataType, DateType, NullType, StructType

from rivermark.model.contract import RAW_SCHEMA, Contract
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.place import Place, raised_at
from rivermark.model.plan_errors import plan_fault, plan_place


class Expected(NamedTuple):
    """Of which types an expression must be, and what is said of another one."""

    word: str
    values: str
    types: tuple[type[DataType], ...]


CONDITION: Final = Expected("condition", "true or false", (BooleanType, NullType))
DAY: Final = Expected("day", "a date", (DateType,))


def expression_faults(
    spark: SparkSession, stream: str, contract: Contract
) -> Iterator[DeclarationError]:
    """Faults of a contract's rules and readers that are Spark columns."""
    columns = [*contract.columns(), *RAW_SCHEMA]
    rows = spark.createDataFrame([], StructType(columns))
    for rule in contract.rules:
        if isinstance(rule.broken, str):
            continue
        what = f"stream '{stream}': rule '{rule.name}'"
        if fault := expression_fault(rows, what, rule.broken, place_of(rule), CONDITION):
            yield fault


def expression_fault(
    rows: DataFrame,
    what: str,
    make: Callable[[], object],
    place: Place | None,
    expected: Expected | None = None,
) -> DeclarationError | None:
    """The reason why the result of `make` cannot be computed of rows, or is not as expected.

    `place` is where it was declared, for errors that have no line of their own.
    """
    try:
        made = make()
        if not isinstance(made, Column):
            kind = type(made).__name__
            return DeclarationError(f"{what} returns a {kind} and not a Column").at(place)
        of_type = rows.select(made.alias("made")).schema["made"].dataType
    except AnalysisException as error:
        return DeclarationError(f"{what}: {plan_fault(error)}").at(plan_place(error) or place)
    except RivermarkError as error:
        return DeclarationError(f"{what}: {error}").at(place)
    except Exception as error:
        text = f"{what} raises {type(error).__name__}: {error}"
        return DeclarationError(text).at(raised_at(error) or place)
    if expected is not None and not isinstance(of_type, expected.types):
        return DeclarationError(
            f"{what} is no {expected.word}: it is {of_type.simpleString()}, and must be "
            f"{expected.values}"
        ).at(place)
    return None
