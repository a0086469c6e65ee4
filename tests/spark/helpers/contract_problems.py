"""What a contract says about single rows, without files or tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.on_executors import parsed_on_executors
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.model.contract import Contract
from rivermark.testing.landing.json_lines import Value, json_line

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
