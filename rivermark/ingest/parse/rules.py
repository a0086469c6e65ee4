"""The rules that rows break, by name: added to their flags, or to the reasons for quarantine.

Rules in SQL are evaluated where the rows are, in the driver or by a worker. Those that are Spark
columns come after them, by a Spark job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.dictionary_texts import as_texts
from rivermark.model.contract import FLAGS, RAW_SCHEMA, Contract, Rule
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.quality.conditions import Conditions
from rivermark.quality.spark_condition import spark_condition

Masks: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

WHOLE: Final = "_whole"
"""Whether a row is well-formed; of others no rule is asked."""
PLACE: Final = "_place"
COLUMNS: Final = ((FLAGS, "flag"), (PROBLEMS, "quarantine"))


def conditions_of(contract: Contract) -> Conditions:
    """The rules of a contract that are SQL.

    Raises:
        DeclarationError: One cannot be evaluated.
    """
    schema = arrow_schema(StructType([*contract.columns(), *RAW_SCHEMA]))
    texts = {r.name: r.broken for r in contract.rules if isinstance(r.broken, str)}
    return Conditions(texts, schema)


class ContractRules:
    """Adds the rules in SQL of one contract that rows break. It may be pickled."""

    def __init__(self, contract: Contract) -> None:
        self._conditions = conditions_of(contract)
        self._rules = [r for r in contract.rules if isinstance(r.broken, str)]

    def added(self, rows: pa.Table) -> pa.Table:
        """The rows with more names in `flags` and `_problems`; `_whole` says of which are asked."""
        if not self._rules or not rows.num_rows:
            return rows
        masks = self._conditions.masks(rows)
        whole = rows[WHOLE].to_numpy()
        for column, action in COLUMNS:
            names = [rule.name for rule in self._rules if rule.action == action]
            if not names:
                continue
            broken = np.column_stack([masks[name].to_numpy() for name in names])
            place = rows.schema.get_field_index(column)
            named = _with_names(rows[column], names, broken & whole[:, None])
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, named.cast(field.type))
        return rows


def with_column_rules(rows: DataFrame, contract: Contract) -> DataFrame:
    """The rows with the rules that are Spark columns in `flags` and `_problems`."""
    return _with_rules(
        rows, [(r, r.broken()) for r in contract.rules if not isinstance(r.broken, str)]
    )


def with_rules_in_real_time(rows: DataFrame, contract: Contract) -> DataFrame:
    """The rows with all rules in `flags` and `_problems`, by expressions of Spark.

    Raises:
        DeclarationError: A rule in SQL has a part that is not evaluated in real time.
    """
    conditions = conditions_of(contract)
    rules = []
    for rule in contract.rules:
        if isinstance(rule.broken, str):
            try:
                rules.append((rule, F.expr(spark_condition(rule.broken, conditions.schema))))
            except DeclarationError as error:
                raise DeclarationError(f"rule '{rule.name}': {error}").at(place_of(rule)) from None
    return with_column_rules(_with_rules(rows, rules), contract)


def rule_faults(stream: str, contract: Contract) -> Iterator[DeclarationError]:
    """Faults of the rules that are SQL; none where they are right."""
    for rule in contract.rules:
        if isinstance(rule.broken, str):
            try:
                conditions_of(replace(contract, rules=(rule,)))
            except DeclarationError as error:
                yield DeclarationError(f"stream '{stream}': {error}").at(place_of(rule))


def column_rules_of(spark: SparkSession, rows: pa.Table, contract: Contract) -> pa.Table:
    """The same for rows of the driver, in their order."""
    if all(isinstance(rule.broken, str) for rule in contract.rules):
        return rows
    numbered = rows.append_column(PLACE, pa.array(range(rows.num_rows), pa.int64()))
    made = with_column_rules(spark.createDataFrame(as_texts(numbered)), contract)
    names = [column for column, _ in COLUMNS]
    ruled = made.select(PLACE, *names).toArrow().sort_by(PLACE)
    for name in names:
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, ruled[name].cast(field.type))
    return rows


def _with_rules(rows: DataFrame, rules: Sequence[tuple[Rule, Column]]) -> DataFrame:
    for column, action in COLUMNS:
        own = [
            F.when(F.col(WHOLE) & broken, F.lit(rule.name))
            for rule, broken in rules
            if rule.action == action
        ]
        if own:
            rows = rows.withColumn(column, F.concat(column, F.array_compact(F.array(*own))))
    return rows


def _with_names(lists: pa.ChunkedArray, names: Sequence[str], broken: Masks) -> pa.ListArray:
    """Lists of names, and behind them the names of the rules that are broken."""
    known = lists.combine_chunks()
    row, rule = np.nonzero(broken)
    rows = np.concatenate([pc.list_parent_indices(known).to_numpy(), row])
    values = pa.concat_arrays(
        [known.flatten().cast(pa.string()), pa.array(names, pa.string()).take(pa.array(rule))]
    )
    ends = np.cumsum(np.bincount(rows, minlength=len(known)))
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    order = np.argsort(rows, kind="stable")
    return pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(order)))
