"""The expressions of a contract, each tried alone: which of them Spark cannot make a plan of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, NullType, StructType

from rivermark.model.contract import RAW_SCHEMA, Contract, Field, Rule
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.place import raised_at
from rivermark.model.plan_errors import plan_fault, plan_place

CONDITIONS: Final = (BooleanType, NullType)


def expression_faults(
    spark: SparkSession, stream: str, contract: Contract
) -> Iterator[DeclarationError]:
    """What is wrong with each rule and each reader of a contract; nothing where they are right."""
    columns = [*contract.columns(), *RAW_SCHEMA]
    rows = spark.createDataFrame([], StructType(columns))
    for rule in contract.rules:
        fault = _fault(rows, f"stream '{stream}': rule '{rule.name}'", rule)
        if fault is not None:
            yield fault
    for field in contract.fields:
        if field.read is not None:
            fault = _fault(rows, f"stream '{stream}': the reader of field '{field.name}'", field)
            if fault is not None:
                yield fault


def _fault(rows: DataFrame, what: str, declared: Rule | Field) -> DeclarationError | None:
    try:
        made = _expression(declared)
        if not isinstance(made, Column):
            kind = type(made).__name__
            return DeclarationError(f"{what} returns a {kind} and not a Column").at(
                place_of(declared)
            )
        of_type = rows.select(made.alias("made")).schema["made"].dataType
    except AnalysisException as error:
        place = plan_place(error) or place_of(declared)
        return DeclarationError(f"{what}: {plan_fault(error)}").at(place)
    except RivermarkError as error:
        return DeclarationError(f"{what}: {error}").at(place_of(declared))
    except Exception as error:
        text = f"{what} raises {type(error).__name__}: {error}"
        return DeclarationError(text).at(raised_at(error) or place_of(declared))
    if isinstance(declared, Rule) and not isinstance(of_type, CONDITIONS):
        return DeclarationError(
            f"{what} is no condition: it is {of_type.simpleString()}, and must be true or false"
        ).at(place_of(declared))
    return None


def _expression(declared: Rule | Field) -> object:
    if isinstance(declared, Rule):
        return declared.broken()
    assert declared.read is not None  # noqa: S101 - only fields with a reader are tried
    return declared.read(F.lit("text"))
