"""The parser of a contract, called by Spark's tasks for rows that they hold."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.rules import WHOLE, with_column_rules


def parsed_on_executors(parser: ContractParser, lines: DataFrame) -> DataFrame:
    """The lines with what `ContractParser.parse` adds to them."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from parser.parse(pa.Table.from_batches([batch])).to_batches()

    columns = StructType([*lines.schema, *parser.columns])
    return with_column_rules(lines.mapInArrow(parse, columns), parser.contract).drop(WHOLE)
