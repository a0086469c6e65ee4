"""Mutated messages in real time, beside what admission makes of the same ones.

RIVERMARK_FUZZ_SEED is the first of the seeds, 1 by default.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from rivermark import Contract, Field, Rule, readers
from rivermark.ingest.parse.contract_parser import RECORD, ContractParser
from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.real_time.rows import sound_rows
from tests.oracles.mutated_messages import SENT, Sent, messages
from tests.seeds import seeds

pytestmark = pytest.mark.spark

FIRST: Final = int(os.environ.get("RIVERMARK_FUZZ_SEED", "1"))
COUNT: Final = 1_000
MOST_BYTES: Final = 100_000
KINDS: Final = {
    "id": "whole",
    "at": "time",
    "text": "text",
    "note": "text",
    "amount": "number",
    "price": "number",
    "comma": "comma",
    "ratio": "number",
    "single": "number",
    "count": "whole",
    "small": "whole",
    "ok": "word",
    "seen": "time",
    "wall": "wall",
    "local": "time",
    "millis": "millis",
}
CONTRACT: Final = Contract(
    fields=(
        Field("id", "long", required=True, names=("number", "_header.id")),
        Field("at", "timestamp", required=True),
        Field("text", "string", nulls=("none",)),
        Field("note", "string"),
        Field("amount", "decimal(38,18)"),
        Field("price", "decimal(9,3)"),
        Field("comma", "decimal(9,3)", read=readers.decimal(9, 3, decimal_comma=True)),
        Field("ratio", "double"),
        Field("single", "float"),
        Field("count", "int"),
        Field("small", "short"),
        Field("ok", "boolean"),
        Field("seen", "timestamp"),
        Field(
            "wall", "timestamp", read=readers.local_timestamp("Europe/Berlin", "dd.MM.yyyy HH:mm")
        ),
        Field("local", "timestamp", read=readers.local_timestamp("America/New_York")),
        Field("millis", "timestamp", read=readers.epoch_millis()),
        Field("place", "long", names=("_offset",)),
        Field("key", "string", names=("_key",)),
        Field("key_bytes", "string", names=("_key_bytes",)),
        Field("header", "string", names=("_header.h",)),
        Field("header_bytes", "string", names=("_header.h_bytes",)),
    ),
    event_time="at",
    rules=(
        Rule("negative", "price < -90", "quarantine", "A price is above -90."),
        Rule("large", "amount > 1000", "flag", "Large amounts are looked at."),
    ),
    max_ahead=timedelta(days=1),
    max_row_bytes=MOST_BYTES,
)
NAMES: Final = [*(field.name for field in CONTRACT.fields if field.name != "place"), "flags"]


def admitted(sent: Sequence[Sent]) -> dict[int, tuple[Any, ...]]:
    """The rows that admission makes of the sound messages, by their numbers."""
    from rivermark.ingest.source.kafka.messages import payload_of

    count, now = len(sent), datetime.now(UTC)
    lines = pa.table(
        {
            "payload": pa.array([payload_of(cast(Any, each), "json")[0] for each in sent]),
            "_format": pa.array(["json"] * count),
            "_columns": pa.nulls(count, pa.string()),
            "_head": pa.nulls(count, pa.string()),
            "_landed_at": pa.array([now] * count, pa.timestamp("us", "UTC")),
            "_file": pa.array(["t"] * count),
            "_row": pa.array(range(count), pa.int64()),
        }
    )
    rows = ContractParser(CONTRACT, ",").parse(lines)
    is_sound = pc.and_(rows[RECORD], pc.equal(pc.list_value_length(rows[PROBLEMS]), 0))
    return values_of(rows.filter(is_sound), "_row")


def in_real_time(spark: SparkSession, sent: Sequence[Sent]) -> dict[int, tuple[Any, ...]]:
    """What is left of them in real time, by their numbers."""
    frame = spark.createDataFrame(
        [
            (each.named, each.content, "t", 3, number, SENT, [*each.headed] or None)
            for number, each in enumerate(sent)
        ],
        "key binary, value binary, topic string, partition int, offset long, "
        "timestamp timestamp, headers array<struct<key string, value binary>>",
    )
    return values_of(sound_rows(frame, CONTRACT).toArrow(), "place")


def values_of(rows: pa.Table, by: str) -> dict[int, tuple[Any, ...]]:
    """The values of each row; times in microseconds, as they may lie in years beyond Python's."""
    columns = [
        rows[name].cast(pa.int64()) if pa.types.is_timestamp(rows[name].type) else rows[name]
        for name in NAMES
    ]
    values = zip(*(each.to_pylist() for each in columns), strict=True)
    return dict(zip(rows[by].to_pylist(), values, strict=True))


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_r02_a_mutated_message_is_judged_in_real_time_as_at_admission(
    spark: SparkSession, seed: int
) -> None:
    sent = messages(FIRST + seed, COUNT, KINDS)
    right, found = admitted(sent), in_real_time(spark, sent)
    wrong = [
        f"{each}\n  found {found.get(number)}\n  right {right.get(number)}"
        for number, each in enumerate(sent)
        if right.get(number) != found.get(number)
    ]
    assert not wrong, f"seed {FIRST + seed}: {len(wrong)} of {COUNT}\n" + "\n".join(wrong[:20])
    assert len(right) > COUNT / 5
