"""Conditions in the SQL of Spark and of DuckDB, by the types of the columns.

Numbers are computed alike because nothing is left to the rules of either: whole numbers and
decimals as decimals with room for every result, floats (and what is divided) as doubles, spans as
microseconds. A division by zero is unknown, and text is never read as a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal

from rivermark.lake.sql import quoted, spark_quoted
from rivermark.model.condition import COMPARISONS, Call, Column, Constant, Node, SqlRefused, parsed
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import NoRowsWhere
from rivermark.model.rule import SuiteRule
from rivermark.quality.column_kind import ColumnKind, whole
from rivermark.quality.errors import SuiteDoesNotFit

Engine = Literal["duckdb", "spark"]

TRUTH: Final = ColumnKind("boolean", "boolean")
TEXT: Final = ColumnKind("text", "string")
DOUBLE: Final = ColumnKind("float", "double")
DATE: Final = ColumnKind("date", "date")
INSTANT: Final = ColumnKind("instant", "timestamp")
SPAN: Final = ColumnKind("span", "span of time")
NOTHING: Final = ColumnKind("nothing", "NULL")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEGATED_DIGITS: Final = 34
"""Spark negates a decimal in a context of so many digits (Decimal.unary_-), and rounds it."""


@dataclass(frozen=True)
class _Value:
    """A piece of SQL, and what it is."""

    sql: str
    kind: ColumnKind


def sql_of_condition(rule: SuiteRule, columns: Mapping[str, ColumnKind], engine: Engine) -> str:
    """The condition of a rule about forbidden rows, as the engine reads it.

    True also where it is unknown: what may fulfil the condition counts as well.

    Raises:
        SuiteDoesNotFit: A column is missing, or types meet that have no common meaning.
    """
    assert isinstance(rule.question, NoRowsWhere)  # noqa: S101 - for the type checker
    try:
        value = _Writer(columns, engine).value(parsed(rule.question.condition))
        if value.kind != TRUTH:
            raise SqlRefused(f"it is of type {value.kind.shown}, and no condition")
    except SqlRefused as error:
        raise SuiteDoesNotFit(str(error), rule=rule.name) from None
    return f"coalesce({value.sql}, true)"


class _Writer:
    def __init__(self, columns: Mapping[str, ColumnKind], engine: Engine) -> None:
        self._columns = columns
        self._engine = engine

    def value(self, node: Node) -> _Value:
        match node:
            case Column(parts):
                return self._column(parts)
            case Constant():
                return self._constant(node)
            case Call("case", arguments):
                return self._case([self.value(a) for a in arguments])
            case Call("cast", (argument,), form):
                return self._cast(self.value(argument), form)
            case Call(name, arguments):
                return self._call(name, [self.value(a) for a in arguments])

    def _by_engine(self, *, duckdb: str, spark: str) -> str:
        return duckdb if self._engine == "duckdb" else spark

    def _column(self, parts: tuple[str, ...]) -> _Value:
        kind = ColumnKind("struct", "table", fields=self._columns)
        names: list[str] = []
        for part in parts:
            by_case = {name.lower(): name for name in kind.fields}
            name = part if part in kind.fields else by_case.get(part.lower())
            if name is None:
                known = ", ".join(kind.fields) or "no fields"
                near = did_you_mean(part, kind.fields) or ";"
                holder = f"'{'.'.join(names)}'" if names else "the table"
                raise SqlRefused(
                    f"there is no column '{'.'.join(parts)}'{near} {holder} has {known}"
                )
            names.append(name)
            kind = kind.fields[name]
        duckdb, spark = (".".join(map(quote, names)) for quote in (quoted, spark_quoted))
        return _Value(self._by_engine(duckdb=duckdb, spark=spark), kind)

    def _constant(self, constant: Constant) -> _Value:
        value = constant.value
        match constant.kind:
            case "null":
                return _Value("NULL", NOTHING)
            case "boolean":
                return _Value(str(value).lower(), TRUTH)
            case "text":
                return _Value("'" + str(value).replace("'", "''") + "'", TEXT)
            case "date":
                return _Value(f"DATE '{value}'", DATE)
            case "span":
                return _Value(f"CAST({value} AS BIGINT)", SPAN)
            case "number":
                return _number(str(value))
        assert isinstance(value, datetime)  # noqa: S101 - what is left is an instant
        micros = (value - EPOCH) // timedelta(microseconds=1)
        duckdb = f"make_timestamptz(CAST({micros} AS BIGINT))"
        spark = f"timestamp_micros(CAST({micros} AS BIGINT))"
        return _Value(self._by_engine(duckdb=duckdb, spark=spark), INSTANT)

    def _call(self, name: str, values: list[_Value]) -> _Value:
        if name in ("and", "or", "not"):
            for value in values:
                _refuse_other(name.upper(), value, "boolean")
            joined = f" {name.upper()} ".join(v.sql for v in values)
            return _Value(f"(NOT {joined})" if name == "not" else f"({joined})", TRUTH)
        first = values[0]
        match name:
            case "is null":
                return _Value(f"({first.sql} IS NULL)", TRUTH)
            case "is true":
                _refuse_other("IS TRUE", first, "boolean")
                return _Value(f"coalesce({first.sql}, false)", TRUTH)
            case "is distinct":
                a, b = self._alike(name.upper(), values)
                return _Value(f"({a.sql} IS DISTINCT FROM {b.sql})", TRUTH)
            case "in":
                probe, *items = self._alike(name.upper(), values)
                return _Value(f"({probe.sql} IN ({', '.join(i.sql for i in items)}))", TRUTH)
            case "like":
                _refuse_other("LIKE", first, "text")
                return _Value(f"({first.sql} LIKE {values[1].sql})", TRUTH)
            case "+" | "-" | "*" | "/" | "%" | "negative" | "abs":
                return self._computed(name, values)
            case "||":
                for value in values:
                    _refuse_other("||", value, "text")
                return _Value(f"({first.sql} || {values[1].sql})", TEXT)
            case "length":
                _refuse_other("length", first, "text")
                return _Value(f"length({first.sql})", whole(32, "int"))
            case "size":
                _refuse_other("size", first, "list")
                of_spark = f"CASE WHEN {first.sql} IS NOT NULL THEN size({first.sql}) END"
                return _Value(
                    self._by_engine(duckdb=f"len({first.sql})", spark=f"({of_spark})"),
                    whole(32, "int"),
                )
            case "isnan":
                _refuse_other("isnan", first, "float")
                return _Value(f"coalesce(isnan({first.sql}), false)", TRUTH)
        a, *rest = self._alike(name, values)
        if name in COMPARISONS:
            if a.kind.family == "boolean" and name not in ("=", "<>"):
                raise SqlRefused(f"{name} of booleans: compare them by = and <>")
            return _Value(f"({a.sql} {name} {rest[0].sql})", TRUTH)
        return _Value(f"{name}({', '.join(v.sql for v in (a, *rest))})", a.kind)

    def _case(self, values: list[_Value]) -> _Value:
        conditions, otherwise = values[:-1:2], values[-1]
        for condition in conditions:
            _refuse_other("CASE WHEN", condition, "boolean")
        results = self._alike("CASE", [*values[1:-1:2], otherwise])
        whens = " ".join(
            f"WHEN {condition.sql} THEN {result.sql}"
            for condition, result in zip(conditions, results, strict=False)
        )
        return _Value(f"(CASE {whens} ELSE {results[-1].sql} END)", results[0].kind)

    def _cast(self, value: _Value, form: str) -> _Value:
        if not value.kind.is_number:
            raise SqlRefused(
                f"CAST of {value.kind.shown} AS {form.upper()}: only numbers are cast; "
                "read text as a number in the stream"
            )
        if form == "double":
            return self._as(value, DOUBLE)
        if value.kind.family == "float":
            raise SqlRefused("CAST of a float to a whole number or decimal: each rounds otherwise")
        if form in ("int", "bigint"):
            target = whole(32 if form == "int" else 64, form)
        else:
            digits, _, scale = form.removeprefix("decimal(").removesuffix(")").partition(",")
            target = _decimal(int(digits), int(scale or 0))
        if (
            target.scale < value.kind.scale
            or target.digits - target.scale < value.kind.digits - value.kind.scale
        ):
            raise SqlRefused(f"CAST of {value.kind.shown} AS {form.upper()} may not have room")
        return self._as(value, _decimal(target.digits, target.scale))

    def _computed(self, name: str, values: list[_Value]) -> _Value:
        spans = [v for v in values if v.kind in (SPAN, INSTANT)]
        if spans:
            return self._moved(name, values)
        for value in values:
            if not value.kind.is_number:
                raise SqlRefused(f"{name} of {value.kind.shown}: only numbers are computed with")
        if name == "/":
            a, b = (self._as(v, DOUBLE) for v in values)
            return _Value(f"({a.sql} / nullif({b.sql}, CAST('0' AS DOUBLE)))", DOUBLE)
        floating = any(v.kind.family == "float" for v in values)
        if floating and name == "%":
            raise SqlRefused("% of floats: use it with whole numbers")
        if floating:
            return self._operated(name, [self._as(v, DOUBLE) for v in values], DOUBLE)
        return self._exactly(name, values)

    def _exactly(self, name: str, values: list[_Value]) -> _Value:
        """Whole numbers and decimals, in a decimal that holds every result."""
        first = values[0].kind
        if name == "*":
            second = values[1].kind
            digits, scale = first.digits + second.digits, first.scale + second.scale
            # Spark gives a product of 38 digits and more fewer places.
            if digits > 37:
                raise _no_room(name, values)
            kind = _decimal(digits, scale)
            if _form(kind) == "BIGINT":
                return self._operated(name, [self._as(v, kind) for v in values], kind)
            sizes = [v.kind.digits for v in values]
            if self._engine == "duckdb" and max(sizes) <= 18:
                # Of two decimals of 64 bits DuckDB makes one of 64 bits.
                sizes[0] = 19
            wide = (
                f"CAST({v.sql} AS DECIMAL({size},{v.kind.scale}))"
                for v, size in zip(values, sizes, strict=True)
            )
            return self._operated(name, [_Value(sql, kind) for sql in wide], kind)
        if name == "%":
            if any(v.kind.scale for v in values):
                raise SqlRefused("% of decimals: use it with whole numbers")
            a, b = (self._as(v, _decimal(38, 0)).sql for v in values)
            of_duckdb = f"(CAST({a} AS HUGEINT) % nullif(CAST({b} AS HUGEINT), 0))"
            sql = self._by_engine(duckdb=of_duckdb, spark=f"({a} % nullif({b}, 0))")
            kind = _decimal(values[1].kind.digits, 0)
            return _Value(f"CAST({sql} AS DECIMAL({kind.digits},0))", kind)
        if name in ("negative", "abs"):
            if first.digits > NEGATED_DIGITS:
                raise SqlRefused(
                    f"{'-' if name == 'negative' else name} of {first.shown}: Spark rounds it to "
                    f"{NEGATED_DIGITS} digits; write CAST(x AS DOUBLE)"
                )
            kind = _decimal(first.digits, first.scale)
            return self._operated(name, [self._as(values[0], kind)], kind)
        whole_digits = max(v.kind.digits - v.kind.scale for v in values) + 1
        scale = max(v.kind.scale for v in values)
        if whole_digits + scale > 38:
            raise _no_room(name, values)
        kind = _decimal(whole_digits + scale, scale)
        return self._operated(name, [self._as(v, kind) for v in values], kind)

    def _operated(self, name: str, values: list[_Value], kind: ColumnKind) -> _Value:
        sql = {"negative": "(- {0})", "abs": "abs({0})"}.get(name, f"({{0}} {name} {{1}})")
        value = sql.format(*(v.sql for v in values))
        return _Value(f"CAST({value} AS {_form(kind)})", kind)

    def _moved(self, name: str, values: list[_Value]) -> _Value:
        """Instants and spans: an instant moved by a span, or the span between two instants."""
        kinds = [v.kind for v in values]
        if name == "-" and kinds == [INSTANT, INSTANT]:
            a, b = (self._micros(v) for v in values)
            return _Value(f"({a} - {b})", SPAN)
        if name == "+" and kinds == [SPAN, INSTANT]:
            kinds.reverse()
            values = values[::-1]
        if name in ("+", "-") and kinds == [INSTANT, SPAN]:
            micros = f"({self._micros(values[0])} {name} {values[1].sql})"
            moved = f"make_timestamptz({micros})"
            return _Value(
                self._by_engine(duckdb=moved, spark=f"timestamp_micros({micros})"), INSTANT
            )
        shown = " and ".join(kind.shown for kind in kinds)
        raise SqlRefused(f"{name} of {shown}: only a timestamp and an INTERVAL, or two timestamps")

    def _micros(self, value: _Value) -> str:
        return self._by_engine(duckdb=f"epoch_us({value.sql})", spark=f"unix_micros({value.sql})")

    def _alike(self, name: str, values: list[_Value]) -> list[_Value]:
        """The values in a type in which they compare, with nothing rounded between exact ones."""
        kinds = [v.kind for v in values if v.kind != NOTHING]
        if not kinds or (len(kinds) < len(values) and name in (*COMPARISONS, "IN")):
            raise SqlRefused(f"{name} with NULL is never known: write IS NULL")
        if all(kind.family == "exact" for kind in kinds):
            scale = max(kind.scale for kind in kinds)
            digits = max(kind.digits - kind.scale for kind in kinds) + scale
            if digits > 38:
                raise _no_room(name, values)
            common = _decimal(digits, scale)
        elif all(kind.is_number for kind in kinds):
            common = DOUBLE
        elif len({kind.family for kind in kinds}) == 1:
            common = kinds[0]
        else:
            shown = " and ".join(dict.fromkeys(kind.shown for kind in kinds))
            raise SqlRefused(f"{name} of {shown}: they have no common type; compare like with like")
        if common.family in ("list", "struct", "other"):
            raise SqlRefused(f"{name} of {common.shown}: values of this type are not compared")
        return [v if v.kind == NOTHING else self._as(v, common) for v in values]

    def _as(self, value: _Value, kind: ColumnKind) -> _Value:
        """The number in another type of number; everything else as it is."""
        if not kind.is_number:
            return value
        sql = value.sql
        if kind.family == "float" and value.kind.family == "exact" and value.kind.digits > 15:
            # DuckDB divides by a power of ten, and so rounds twice.
            sql = self._by_engine(duckdb=f"CAST({sql} AS VARCHAR)", spark=sql)
        return _Value(f"CAST({sql} AS {_form(kind)})", kind)


def _decimal(digits: int, scale: int) -> ColumnKind:
    return ColumnKind("exact", f"decimal({digits},{scale})", digits, scale)


def _form(kind: ColumnKind) -> str:
    """The type's name, in both: whole numbers that fit are computed with as such."""
    if kind.family == "float":
        return "DOUBLE"
    if not kind.scale and kind.digits <= 18:
        return "BIGINT"
    return f"DECIMAL({kind.digits},{kind.scale})"


def _number(text: str) -> _Value:
    if "e" in text.lower():
        return _Value(f"CAST('{text}' AS DOUBLE)", DOUBLE)
    number = Decimal(text)
    scale = max(0, -int(number.as_tuple().exponent))
    digits = max(len(number.as_tuple().digits), scale + (1 if abs(number) >= 1 else 0), 1)
    if digits > 38:
        raise SqlRefused(f"{text} has more than 38 digits")
    kind = _decimal(digits, scale)
    return _Value(f"CAST('{number:f}' AS {_form(kind)})", kind)


def _no_room(name: str, values: list[_Value]) -> SqlRefused:
    shown = " and ".join(v.kind.shown for v in values)
    return SqlRefused(f"{name} of {shown} needs more than 38 digits: write CAST(x AS DOUBLE)")


def _refuse_other(name: str, value: _Value, family: str) -> None:
    if value.kind.family != family and value.kind != NOTHING:
        raise SqlRefused(f"{name} of {value.kind.shown}: it takes a {family}")
