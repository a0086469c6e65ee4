"""A field's own reader, which only Spark can evaluate: asked of each different text once."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.parse.projection import Projection
from rivermark.model.contract import Field
from rivermark.model.field_readers import reader_for

TEXT: Final = "text"
MOST_KNOWN: Final = 4_096
"""Texts whose values are remembered from batch to batch, such as codes and names of payments."""


class OwnReader:
    """Reads the texts of one field."""

    def __init__(self, spark: SparkSession, field: Field, kind: pa.DataType) -> None:
        read = field.read or reader_for(field.type)
        value = read(F.col(TEXT)).try_cast(field.type)
        self._projection = Projection(spark, [(field.name, value)])
        self._texts = pa.array([], pa.string())
        self._values = pa.array([], kind)
        self._lasts: bool | None = None

    def read(self, texts: pa.Array) -> pa.Array:
        """The value of each text.

        Nothing where the reader looks at other columns too: such rows are left to the parser.
        """
        coded = texts.dictionary_encode()
        known, values = self._texts, self._values
        places = pc.index_in(coded.dictionary, value_set=known)
        if places.null_count:
            new = coded.dictionary.filter(places.is_null())
            try:
                read = self._projection.of(pa.table({TEXT: new})).column(0)
            except AnalysisException:
                return pa.nulls(len(texts), values.type)
            known = pa.concat_arrays([known, new])
            values = pa.concat_arrays([values, *read.cast(values.type).chunks])
            places = pc.index_in(coded.dictionary, value_set=known)
            if len(known) <= MOST_KNOWN and self._is_lasting(new):
                self._texts, self._values = known, values
        return values.take(places).take(coded.indices)

    def _is_lasting(self, texts: pa.Array) -> bool:
        """Whether the same text has the same value next time."""
        if self._lasts is None:
            planned = self._projection.planned(pa.schema({TEXT: texts.type}))
            self._lasts = planned.repeatable
        return self._lasts
