"""Conditions of rules: SQL expressions over the columns of one row, evaluated by DuckDB.

They are the same in the driver and in Spark's workers: rows in Arrow go in, and come out beside
nothing but what the expressions say of them. Times are UTC, a division by zero is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.lake.dictionary_texts import as_texts
from rivermark.lake.quoting import quoted
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.quality.condition_engine import registered

if TYPE_CHECKING:
    import duckdb

Constants: TypeAlias = Mapping[str, str]

PLACE: Final = "__place"
"""Where a row stood among those that were sent."""


class ConditionFailed(RivermarkError):
    """A condition cannot be computed of a row; of no row is known whether it holds."""


@dataclass(frozen=True)
class Conditions:
    """Named SQL expressions over rows of one schema, checked when they are made.

    Without `types` they are conditions, of which there are `masks`; with them there are `values`.
    They may be pickled, and are not checked again where they arrive. `what` is the word for one of
    them in errors.

    Raises:
        DeclarationError: one is no expression over these columns, or may not be evaluated; the
            message has its name, the reason, and the place in its text.
    """

    texts: Mapping[str, str]
    schema: pa.Schema
    types: Mapping[str, pa.DataType] | None = None
    what: str = "rule"
    columns: tuple[str, ...] = field(init=False)
    """The columns of the schema to which they refer, in its order."""

    def __post_init__(self) -> None:
        from rivermark.quality.condition_text import columns_of, columns_of_value

        used = set[str]()
        for name, text in self.texts.items():
            try:
                if self.types is None:
                    used.update(columns_of(text, self.schema))
                else:
                    kind = self.types[name]
                    bare, value = _cast(text, kind), _tried(text, kind)
                    used.update(columns_of_value(text, self.schema, bare, value))
            except DeclarationError as error:
                raise DeclarationError(f"{self.what} '{name}': {error}") from None
        object.__setattr__(self, "columns", tuple(n for n in self.schema.names if n in used))

    def masks(self, rows: pa.Table) -> pa.Table:
        """For each row whether each condition holds; one that is unknown does not.

        Raises:
            ConditionFailed: One cannot be computed of some row, as where a number overflows.
        """
        sqls = {name: f"coalesce({_inner(text)}, false)" for name, text in self.texts.items()}
        return self._evaluated(rows, sqls, _masks)

    def values(self, rows: pa.Table) -> pa.Table:
        """The value of each expression in its type; null for a row of which it has none.

        An expression that raises for a value has none for that row, and goes on with the others. A
        time outside of the years 1 to 9999 is none.
        """
        kinds = self.types or {}
        sqls = {name: _tried(text, kinds[name]) for name, text in self.texts.items()}
        return self._evaluated(rows, sqls, _values).cast(pa.schema(list(kinds.items())))

    def _evaluated(
        self,
        rows: pa.Table,
        expressions: Mapping[str, str],
        select: Callable[[pa.Table, Constants, Sequence[str]], pa.Table],
    ) -> pa.Table:
        import duckdb

        if not expressions:
            return pa.table({})
        # Where no column is read, there is still a row for each.
        sent = rows.select(list(self.columns))
        sent = sent.append_column(PLACE, pa.array(np.arange(rows.num_rows)))
        sent, constants = _without_constants(sent)
        try:
            made = select(sent, constants, [*expressions.values(), PLACE])
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error:
            for name, sql in expressions.items():
                try:
                    select(sent, constants, [sql])
                except duckdb.Error as error:
                    raise ConditionFailed(self._failure(name, error)) from None
            raise
        return _in_order(made).rename_columns(list(expressions))

    def _failure(self, name: str, error: duckdb.Error) -> str:
        # What DuckDB says may quote a value of the row.
        kind = type(error).__name__.removesuffix("Exception")
        return (
            f"{self.what} '{name}' cannot be computed of a row ({kind} error): {self.texts[name]}. "
            "Write TRY(...) around what may fail: then it is unknown there"
        )


def _in_order(made: pa.Table) -> pa.Table:
    """The results of rows in the rows' order, without their places, which stand last."""
    *names, last = made.column_names
    places = made[last].to_numpy()
    if (places[1:] < places[:-1]).any():
        # IN over many values is a join, which hands on small batches of Arrow last.
        made = made.take(pa.array(np.argsort(places)))
    return made.select(names)


def _without_constants(rows: pa.Table) -> tuple[pa.Table, Constants]:
    """The rows without text columns of one value, such as the name of their file, and that value.

    Of a constant DuckDB computes an expression once, of a column for each row.
    """
    constants = {}
    for name, values in zip(rows.column_names, rows.columns, strict=True) if len(rows) else ():
        if pa.types.is_dictionary(values.type):
            values = values.unify_dictionaries().unique().cast(pa.string())
        if pa.types.is_string(values.type) and not values.null_count:
            first = values[0]
            if values[-1] == first and pc.all(pc.equal(values, first)).as_py():
                constants[name] = first.as_py()
    return as_texts(rows.drop_columns([*constants])), constants


def _masks(rows: pa.Table, constants: Constants, expressions: Sequence[str]) -> pa.Table:
    # By numpy, since for a table in Arrow DuckDB plans a query twice.
    names = [f"c{n}" for n in range(len(expressions))]
    select = ", ".join(f"{sql} AS {name}" for sql, name in zip(expressions, names, strict=True))
    with registered(rows) as duck:
        made = duck.execute(_query(duck, select, constants)).fetchnumpy()
    return pa.table({name: pa.array(made[name]) for name in names})


def _values(rows: pa.Table, constants: Constants, expressions: Sequence[str]) -> pa.Table:
    with registered(rows) as duck:
        return duck.sql(_query(duck, ", ".join(expressions), constants)).to_arrow_table()


def _query(duck: duckdb.DuckDBPyConnection, select: str, constants: Constants) -> str:
    columns = ["*"]
    for n, (name, value) in enumerate(constants.items()):
        # A variable is a constant to the planner, which a bound value is not.
        duck.execute(f"SET VARIABLE constant_{n} = ?", [value])
        columns.append(f"getvariable('constant_{n}') AS {quoted(name)}")
    # Every name in it is declared.
    return f"SELECT {select} FROM (SELECT {', '.join(columns)} FROM rows)"  # noqa: S608


def _inner(text: str) -> str:
    # A comment at its end goes to the end of its line.
    return f"(\n{text}\n)"


def _cast(text: str, kind: pa.DataType) -> str:
    return f"CAST({_inner(text)} AS {sql_type(kind)})"


def _tried(text: str, kind: pa.DataType) -> str:
    value = _cast(text, kind)
    if pa.types.is_temporal(kind):
        # Infinite ones, too, which Arrow would take for finite.
        value = f"CASE WHEN year({value}) BETWEEN 1 AND 9999 THEN {value} END"
    return f"TRY({value})"


NAMES: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
}


def sql_type(kind: pa.DataType) -> str:
    """The name of a type.

    Raises:
        TypeError: for a list, a struct, and other types that no field has a reader of.
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if kind not in NAMES:
        raise TypeError(f"no condition has values of type {kind}")
    return NAMES[kind]
