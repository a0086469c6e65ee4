"""Messages of topics as typed rows, one by one and without batches, read and cut by Spark itself.

Admission cuts messages in Python, which Spark's real-time mode does not run. Here Spark's Kafka
source reads them and `from_json` cuts them. The readers, bounds and rules of the contract are those
of admission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.ingest.parse.cutter import MALFORMED, TOO_LARGE, UNPARSABLE
from rivermark.ingest.parse.parser import CELLS, PROBLEMS, Parser, spelled
from rivermark.ingest.parse.projection import PLACE
from rivermark.ingest.source.kafka.options import ConsumerGroup, Start
from rivermark.ingest.source.kafka.source import KafkaSource
from rivermark.model.contract import FLAGS, Contract
from rivermark.model.errors import DeclarationError
from rivermark.model.ingest import Ingest

CORRUPT: Final = "_corrupt"
SOUND: Final = "_sound"
BARRIER: Final = "_barrier"
KNOWN: Final = {
    "_topic": lambda: F.col("topic"),
    "_partition": lambda: F.col("partition").cast("string"),
    "_offset": lambda: F.col("offset").cast("string"),
    "_timestamp": lambda: F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
    "_key": lambda: F.col("key").cast("string"),
}
"""What the broker says of a message, by the names that a `KafkaSource` gives it."""
HEADER: Final = "_header."


def real_time_rows(spark: SparkSession, ingest: Ingest, settings: Mapping[str, str]) -> DataFrame:
    """An unbounded DataFrame of the contract's fields and `flags`, a row each sound message.

    No watermark decides here: late messages are among them. Names count as they are declared, in
    no other letter case. `settings` are those of Kafka's Java client.

    Raises:
        DeclarationError: the source is no `KafkaSource` of JSON, makes rows of tombstones, or
            starts at the offsets of a consumer group.
    """
    source = ingest.source
    if not isinstance(source, KafkaSource) or source.format != "json":
        raise DeclarationError(
            f"stream '{ingest.name}': only JSON messages of a KafkaSource are read in real time"
        )
    if source.tombstones == "rows":
        raise DeclarationError(
            f"stream '{ingest.name}': in real time tombstones are skipped, and not read as rows"
        )
    topics = (
        {"subscribePattern": source.pattern}
        if source.pattern
        else {"subscribe": ",".join(source.names)}
    )
    options = {
        **topics,
        **_start(ingest.name, source.start),
        "includeHeaders": "true",
        "kafka.isolation.level": source.isolation,
        **{f"kafka.{name}": value for name, value in settings.items()},
    }
    messages = spark.readStream.format("kafka").options(**options).load()
    raw = {
        "payload": F.col("value").cast("string"),
        "_format": F.lit("json"),
        "_columns": F.lit(None).cast("string"),
        "_head": F.lit(None).cast("string"),
        "_file": F.col("topic"),
        "_row": F.col("offset"),
        # A batch lasts for minutes: the time of its start alone would call many messages ahead.
        "_landed_at": F.greatest("timestamp", F.current_timestamp()),
        PLACE: F.col("offset"),
    }
    contract = ingest.contract
    cut = messages.withColumn("_json", _json(contract)).select(
        *(column.alias(name) for name, column in raw.items()), _cells(contract).alias(CELLS)
    )
    typed = Parser(contract, source.delimiter).parse_cut(cut, [*raw])
    fields = [field.name for field in contract.fields]
    sound = F.col("_record") & (F.size(PROBLEMS) == 0)
    # Spark would move a filter below the parser, with all of its expressions written out where a
    # column stood: planning takes minutes then. It moves none below what is not deterministic.
    barrier = F.spark_partition_id() >= 0
    kept = typed.select(*fields, FLAGS, sound.alias(SOUND), barrier.alias(BARRIER))
    return kept.where(F.col(SOUND) & F.col(BARRIER)).select(*fields, FLAGS)


def _start(stream: str, start: Start) -> dict[str, str]:
    if isinstance(start, str):
        return {"startingOffsets": start}
    if isinstance(start, datetime):
        millis = str(int(start.timestamp() * 1000))
        return {"startingTimestamp": millis, "startingOffsetsByTimestampStrategy": "latest"}
    if isinstance(start, ConsumerGroup):
        raise DeclarationError(
            f"stream '{stream}': in real time a start is a time, offsets, earliest or latest, and "
            f"not that of the consumer group '{start.name}'"
        )
    return {"startingOffsets": json.dumps(start)}


def _json(contract: Contract) -> Column:
    """The members of the object that fields are spelled by, as texts."""
    names = {name for field in contract.fields for name in spelled(field).spellings}
    members = [StructField(name, StringType()) for name in sorted(names)]
    options = {"allowSingleQuotes": "false", "columnNameOfCorruptRecord": CORRUPT}
    kind = StructType([*members, StructField(CORRUPT, StringType())])
    return F.from_json(F.col("value").cast("string"), kind, options)


def _cells(contract: Contract) -> Column:
    """What the cutter makes of a message: a text a field, and why it is malformed."""
    texts = []
    for field in map(spelled, contract.fields):
        text = F.coalesce(*map(_text, field.spellings))
        texts.append(F.when(~F.trim(text).isin(*field.nulls), text).alias(field.name))
    too_large = F.octet_length("value") > contract.max_row_bytes
    malformed = F.when(too_large, TOO_LARGE).when(F.col("_json")[CORRUPT].isNotNull(), UNPARSABLE)
    return F.struct(*texts, malformed.alias(MALFORMED))


def _text(name: str) -> Column:
    """The text of one spelling: what the broker says, as for admission, or a member."""
    member = F.col("_json")[name]
    if name in KNOWN:
        return F.coalesce(KNOWN[name](), member)
    if name.startswith(HEADER):
        own = F.filter("headers", lambda header: header["key"] == name.removeprefix(HEADER))
        return F.coalesce(F.try_element_at(own, F.lit(-1))["value"].cast("string"), member)
    return member
