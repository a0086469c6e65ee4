"""A web service that is looked up in: one request a key, whose reply is a JSON object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote

import msgspec
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from rivermark.connect.http import (
    PASSING,
    HttpClient,
    HttpFailed,
    check_headers,
    resolved_headers,
    server_of,
)
from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.operators.enrichment.lookup import Key, Lookup, LookupClient, LookupFailed

FORMS: Final[dict[type[DataType], Any]] = {
    BooleanType: bool,
    ByteType: int,
    DateType: date,
    DecimalType: Decimal,
    DoubleType: float,
    FloatType: float,
    IntegerType: int,
    LongType: int,
    ShortType: int,
    StringType: str,
    TimestampType: datetime,
}
"""What a value of JSON is read as."""
PLACE: Final = re.compile(r"\{(\w+)\}")
MOST_DIGITS: Final = 20
"""Of whole numbers in a column."""
ELSEWHERE: Final = ("", ".", "..")
"""Values that make another path of a URL than one for a key."""


@declared("lookup", lambda values: values.get("url"))
@dataclass(frozen=True, kw_only=True)
class HttpLookup(Lookup):
    """GET of a URL in which `{name}` stands for the value of a key's column.

    The reply is a JSON object with the `columns` (DDL text) as fields; 404 means that the key does
    not exist. Values of `headers` written `$NAME` are those of the environment variable.
    """

    url: str
    columns: str
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        server_of(self.url)
        check_headers(f"lookup '{self.name}'", self.headers)
        for column in self.schema.fields:
            if type(column.dataType) not in FORMS:
                raise DeclarationError(
                    f"lookup '{self.name}': column '{column.name}' of type "
                    f"{column.dataType.simpleString()} cannot be read from JSON"
                )

    @property
    def name(self) -> str:
        """The URL without its query."""
        return self.url.partition("?")[0]

    @property
    def schema(self) -> StructType:
        """The columns of its values."""
        return struct_type(self.columns)

    def open(self, on: Sequence[str], timeout: timedelta) -> LookupClient:
        """A client of one connection."""
        return _Client(self, on, timeout)


class NumberText(str):
    """The digits of a number with a point or an exponent, as a reply has them."""

    __slots__ = ()


EXACT: Final = msgspec.json.Decoder(dict[str, Any], float_hook=NumberText)
"""Reads numbers as the digits that they are: as doubles they would be others."""


def fitted(value: Any, form: Any) -> Any:
    """A value of a reply as its column has it; raises MsgspecError where it does not fit."""
    if form == str | None and isinstance(value, NumberText | int) and not isinstance(value, bool):
        return str(value)
    if form == int | None and isinstance(value, NumberText):
        number = Decimal(value)
        # Not by way of a double, which has 53 bits.
        value = int(number) if number.adjusted() < MOST_DIGITS and number % 1 == 0 else value
    return msgspec.convert(value, form, strict=False)


class _Client(LookupClient):
    def __init__(self, lookup: HttpLookup, on: Sequence[str], timeout: timedelta) -> None:
        self._on = on
        self._http = HttpClient(lookup.url, timeout)
        for name in PLACE.findall(self._http.path):
            if name not in on:
                raise DeclarationError(
                    f"lookup '{lookup.name}': its URL names {{{name}}}, which is not among the "
                    f"columns that it is looked up by: {', '.join(on)}"
                )
        self._in_path = PLACE.findall(self._http.path.partition("?")[0])
        self._headers = resolved_headers("lookup", lookup.headers)
        self._fields = [(f.name, FORMS[type(f.dataType)] | None) for f in lookup.schema.fields]

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Sequence[Any]]:
        [key] = keys
        values = {name: quote(str(v), safe="") for name, v in zip(self._on, key, strict=True)}
        for name in self._in_path:
            if values[name] in ELSEWHERE:
                raise LookupFailed(f"{name}='{values[name]}' cannot be part of a URL", passes=False)
        path = PLACE.sub(lambda place: values[place[1]], self._http.path)
        try:
            reply = self._http.request("GET", path, self._headers)
        except HttpFailed as error:
            raise LookupFailed(str(error), passes=True) from None
        if reply.status == 404:
            return {}
        if reply.status != 200:
            raise LookupFailed(f"replied {reply.status}", passes=reply.status in PASSING)
        try:
            value = EXACT.decode(reply.body)
            return {key: [fitted(value.get(name), form) for name, form in self._fields]}
        # Of msgspec, of text that is no UTF-8, and of lists in lists without end.
        except (msgspec.MsgspecError, ArithmeticError, UnicodeDecodeError, RecursionError) as error:
            raise LookupFailed(f"its reply does not fit: {error}", passes=False) from None

    def abort(self) -> None:
        self._http.abort()

    def close(self) -> None:
        self._http.close()
