"""Conditions in SQL say of every row what Spark said of it, for values at every edge.

`spark_results.json` was written by Spark 4.1 from the same sentences as Spark columns (commit
2047ef4d): a bit a row, in hexadecimal digits. The rows are those of `tests.oracles.edge_rows`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from assets.topology import TOPOLOGY
from rivermark import Contract, Ingest
from rivermark.ingest.parse.rules import conditions_of
from rivermark.quality.conditions import Conditions
from tests.oracles.edge_rows import KINDS, table

SAID: Final = json.loads((Path(__file__).parent / "spark_results.json").read_text())
CONTRACTS: Final = {
    stream.name: stream.contract
    for stream in TOPOLOGY.streams
    if isinstance(stream, Ingest) and stream.contract.rules
}
BELOW_A_SECOND: Final = {
    ("taxi/debs_trips", "zero_length"),
    ("taxi/debs_trips", "stated_length_differs"),
}
"""Spark cut seconds before 1970 towards zero; DuckDB, towards the past."""
CLOCKS: Final = {"ambiguous_local_time", "skipped_local_time"}
"""Asked of texts that are times: of others, whose rows are quarantined, they said something."""


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table(KINDS, 600, seed=2)


def digits(mask: pa.ChunkedArray) -> str:
    bits = "".join("1" if holds else "0" for holds in mask.to_pylist())
    return f"{int(bits, 2):0{(len(bits) + 3) // 4}x}"


@pytest.mark.parametrize("name", SAID["kinds"])
def test_every_kind_of_condition(rows: pa.Table, name: str) -> None:
    kind = SAID["kinds"][name]
    masks = Conditions({name: kind["sql"]}, rows.schema).masks(rows)
    assert digits(masks[name]) == kind["said"]


def with_origin(contract: Contract) -> StructType:
    """The columns that a contract's rules refer to."""
    origin = [StructField(name, StringType()) for name in ("_file", "_columns", "payload")]
    return StructType([*contract.columns(), *origin])


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_rules_of_shipped_contracts(name: str) -> None:
    contract = CONTRACTS[name]
    batch = table(with_origin(contract), 300, seed=1)
    masks = conditions_of(contract).masks(batch)
    said = SAID["rules"][name]
    assert list(said) == [rule.name for rule in contract.rules]
    for rule in said:
        if (name, rule) not in BELOW_A_SECOND and rule not in CLOCKS:
            assert digits(masks[rule]) == said[rule], rule
