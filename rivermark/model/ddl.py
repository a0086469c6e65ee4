"""Spark's column types and schemas from DDL text, without a Spark session.

Spark parses DDL in the JVM, which a declaration must not need. This parser takes a part of that
grammar and refuses the rest:

    ride_id long NOT NULL, tip decimal(12,2) COMMENT 'In US dollars', stops array<string>,
    fees map<string, decimal(12,2)>, start struct<lon: double, lat: double>
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.errors import DeclarationError

ATOMIC: Final[dict[str, type[DataType]]] = {
    "bigint": LongType,
    "binary": BinaryType,
    "boolean": BooleanType,
    "byte": ByteType,
    "date": DateType,
    "double": DoubleType,
    "float": FloatType,
    "int": IntegerType,
    "integer": IntegerType,
    "long": LongType,
    "short": ShortType,
    "smallint": ShortType,
    "string": StringType,
    "timestamp": TimestampType,
    "tinyint": ByteType,
}

TOKEN: Final = re.compile(r"\s*(?:('(?:[^'\\]|\\.)*')|(\w+)|([<>(),:]))")


def data_type(text: str) -> DataType:
    """The type that a text such as `decimal(12,2)` names; DeclarationError for any other text."""
    parser = _Parser(text)
    parsed = parser.type()
    parser.end()
    return parsed


def struct_type(text: str) -> StructType:
    """The schema that a list of columns describes; DeclarationError names the column at fault."""
    parser = _Parser(text)
    columns = parser.columns(between="")
    parser.end()
    return columns


class _Parser:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        self._column = ""
        place = 0
        while text[place:].strip():
            token = TOKEN.match(text, place)
            if token is None:
                raise DeclarationError(
                    f"{text[place:].strip()!r} is no DDL, in {text!r}; write types such as long, "
                    "timestamp or decimal(12,2)"
                )
            self._tokens.append(token[0].strip())
            place = token.end()

    def columns(self, between: str) -> StructType:
        """Columns up to the end or a closing bracket; `between` stands after each name."""
        fields = [self._field(between)]
        while self._took(","):
            fields.append(self._field(between))
        repeated = {f.name for f in fields if [g.name for g in fields].count(f.name) > 1}
        if repeated:
            raise DeclarationError(f"two columns named '{min(repeated)}' in {self._text!r}")
        return StructType(fields)

    def type(self) -> DataType:
        """A type; those of elements, values and nested columns may be null, as in Spark."""
        name = self._word("a type").lower()
        if name in ATOMIC:
            return ATOMIC[name]()
        if name == "decimal":
            return self._decimal()
        if name not in ("array", "map", "struct"):
            known = ", ".join(sorted([*ATOMIC, "decimal(p,s)", "array<>", "map<>", "struct<>"]))
            raise self._error(f"unknown type '{name}'; there are {known}")
        self._expect("<")
        nested: DataType
        if name == "array":
            nested = ArrayType(self.type())
        elif name == "map":
            key = self.type()
            self._expect(",")
            nested = MapType(key, self.type())
        else:
            nested = self.columns(between=":")
        self._expect(">")
        return nested

    def end(self) -> None:
        """Refuse what is left over."""
        if self._tokens:
            raise self._error(f"'{self._tokens[0]}' is not expected")

    def _field(self, between: str) -> StructField:
        name = self._word("a column")
        self._column = name
        if between:
            self._expect(between)
        kind = self.type()
        self._column = name
        nullable = not self._took("NOT")
        if not nullable:
            self._expect("NULL")
        comment = {"comment": self._quoted()} if self._took("COMMENT") else None
        return StructField(name, kind, nullable, comment)

    def _decimal(self) -> DecimalType:
        self._expect("(")
        precision = self._word("a precision")
        self._expect(",")
        scale = self._word("a scale")
        self._expect(")")
        if not (precision.isdigit() and scale.isdigit()) or not int(scale) <= int(precision) <= 38:
            raise self._error(f"decimal({precision},{scale}): expected scale <= precision <= 38")
        return DecimalType(int(precision), int(scale))

    def _quoted(self) -> str:
        if not self._tokens or not self._tokens[0].startswith("'"):
            raise self._error("expected a comment in single quotes")
        return re.sub(r"\\(.)", r"\1", self._tokens.pop(0)[1:-1])

    def _word(self, what: str) -> str:
        if not self._tokens or not re.fullmatch(r"\w+", self._tokens[0]):
            raise self._error(f"expected {what}")
        return self._tokens.pop(0)

    def _took(self, token: str) -> bool:
        if self._tokens and self._tokens[0].upper() == token:
            del self._tokens[0]
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._took(token):
            instead = f"'{self._tokens[0]}'" if self._tokens else "the end"
            raise self._error(f"expected '{token}', not {instead}")

    def _error(self, problem: str) -> DeclarationError:
        at = f"column '{self._column}': " if self._column else ""
        return DeclarationError(f"{at}{problem}, in {self._text!r}")
