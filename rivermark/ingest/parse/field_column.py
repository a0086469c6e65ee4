"""A field as it is read from lines: by its names, without its words for 'no value'."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.parse.column_values import ColumnValues
from rivermark.ingest.parse.cutter import Spelled
from rivermark.model.contract import Contract
from rivermark.model.reader import LandingTime


@dataclass(frozen=True)
class FieldColumn:
    """One field of a contract, and what reads its texts."""

    spelled: Spelled
    required: bool
    values: ColumnValues

    @property
    def name(self) -> str:
        """The field's name."""
        return self.spelled.name

    def direct(self, kind: str) -> pa.DataType | None:
        """The type by which a JSON value of a kind is read; None where its text is needed."""
        if kind == "text":
            return pa.string()
        if len(self.spelled.nulls) > 1:
            return pa.string() if kind == "null" else None
        return self.values.direct(kind)

    def read(self, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The values of texts (also as a dictionary), and for which of them nothing is wrong."""
        if t.is_dictionary(texts.type):
            values, good = self.read(texts.dictionary)
            good = pc.fill_null(good.take(texts.indices), not self.required)
            return values.take(texts.indices), good
        texts = self.spelled.without_nulls(texts)
        values = self.values.read(texts)
        return values, self.good(values, texts)

    def good(self, values: pa.Array, read: pa.Array) -> pa.Array:
        """For which rows there is nothing wrong with the value of what was read."""
        return values.is_valid() if self.required else pc.or_(values.is_valid(), read.is_null())


def field_columns(contract: Contract) -> list[FieldColumn]:
    """The fields of a contract that have texts, in their order."""
    return [
        FieldColumn(Spelled.of(field), field.required, ColumnValues(field.reader))
        for field in contract.fields
        if not isinstance(field.read, LandingTime)
    ]
