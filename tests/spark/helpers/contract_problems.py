"""What a contract says about single rows, without files or tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.parse.rules import WHOLE, with_column_rules
from rivermark.model.contract import Contract
from simulator.landing.json_lines import Value, json_line

LANDED = datetime(2030, 1, 1, tzinfo=UTC)


def problems(
    spark: SparkSession, contract: Contract, rows: Sequence[dict[str, Value]]
) -> list[list[str]]:
    """The reasons for which each row would be set aside, in the order of the rows."""
    raw = spark.createDataFrame(
        [
            (number, json_line(row), "json", None, None, LANDED, "file")
            for number, row in enumerate(rows)
        ],
        "_row long, payload string, _format string, _columns string, _head string, "
        "_landed_at timestamp, _file string",
    )
    parsed = parsed_on_executors(ContractParser(contract, ","), raw).orderBy("_row")
    return [list(row[PROBLEMS]) for row in parsed.collect()]


def parsed_on_executors(parser: ContractParser, lines: DataFrame) -> DataFrame:
    """The lines with what `ContractParser.parse` adds to them."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from parser.parse(pa.Table.from_batches([batch])).to_batches()

    columns = StructType([*lines.schema, *parser.columns])
    return with_column_rules(lines.mapInArrow(parse, columns), parser.contract).drop(WHOLE)
