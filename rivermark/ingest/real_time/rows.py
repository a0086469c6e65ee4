"""Messages of topics as typed rows, one by one and without batches, read and cut by Spark itself.

Admission parses messages in Python, which Spark's real-time mode does not run. Here Spark's Kafka
source reads them, `from_json` cuts them, and expressions say of a text what the contract's readers
say of it. Bounds and rules are those of admission.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.ingest.parse.cutter import MALFORMED, TOO_LARGE, UNDECODABLE, UNPARSABLE, Spelled
from rivermark.ingest.parse.problems import IMPOSSIBLE, PROBLEMS
from rivermark.ingest.parse.rules import WHOLE, with_rules_in_real_time
from rivermark.ingest.parse.text_bytes import REPLACED
from rivermark.ingest.real_time.members import (
    FLAT,
    INNER,
    MEMBERS,
    NESTED,
    OBJECT,
    is_odd,
    last_member,
    members_of,
    said_by_broker,
    text_of,
)
from rivermark.ingest.real_time.objects import (
    EXACT,
    HALF,
    LAST,
    WHITE,
    WRITTEN,
    exact,
    is_sound_within,
    read,
)
from rivermark.ingest.real_time.readers import value_of
from rivermark.ingest.source.kafka.options import ConsumerGroup, Start
from rivermark.ingest.source.kafka.source import KafkaSource
from rivermark.model.contract import FLAGS, Contract
from rivermark.model.errors import DeclarationError
from rivermark.model.ingest import Ingest

OBJECTS: Final = "_objects"
"""The message as a list: one object, if it is sound, and ours."""
SPACE: Final = f"{WHITE}\ufeff"


def with_objects(messages: DataFrame, contract: Contract) -> DataFrame:
    """The messages with what `cells` takes from them."""
    keys = _keys(contract)
    members = StructType([StructField(name, StringType()) for name in [*keys, LAST]])
    objects = messages.withColumn(WRITTEN, F.ltrim(F.col("value").cast("string"), F.lit(SPACE)))
    objects = objects.withColumn(EXACT, exact(F.col(WRITTEN)))
    objects = objects.withColumn(OBJECTS, read(F.col(EXACT), members))
    objects = objects.withColumn(OBJECT, F.get(OBJECTS, F.lit(0)))
    flat = F.when(is_odd(contract, keys), F.regexp_replace(WRITTEN, NESTED, f'$1"{INNER}"'))
    return objects.withColumn(FLAT, flat).withColumn(MEMBERS, members_of())


def _keys(contract: Contract) -> list[str]:
    """The names under which the cutter looks for fields."""
    return sorted({key for field in contract.fields for key in Spelled.of(field).keys})


def cells(contract: Contract) -> Column:
    """The cutter's texts of a message, one a field, and why it is malformed."""
    texts = {}
    for field in map(Spelled.of, contract.fields):
        by_name = F.coalesce(*map(text_of, field.keys))
        one_by_one = F.coalesce(*map(last_member, field.keys))
        text = F.when(F.col(MEMBERS).isNull(), by_name).otherwise(one_by_one)
        texts[field.name] = F.when(~F.trim(text).isin(*field.nulls), text)
    value = F.col("value").cast("string")
    ended = F.get(OBJECTS, F.lit(1))[LAST].isNotNull()
    one = (F.size(OBJECTS) == 2) & ended & F.col(OBJECT).isNotNull() & F.is_valid_utf8(value)
    one &= F.endswith(F.rtrim(value, F.lit(WHITE)), F.lit("}")) & is_sound_within()
    no_json = ~F.coalesce(one, F.lit(False))
    halved = F.contains(EXACT, F.lit(HALF)) & F.exists(
        F.array(*texts.values()), lambda text: F.contains(text, F.lit(HALF))
    )
    malformed = (
        F.when(_is_too_large(contract), TOO_LARGE)
        .when(no_json, UNPARSABLE)
        .when(_is_replaced() | F.coalesce(halved, F.lit(False)), UNDECODABLE)
    )
    return F.struct(*(text.alias(name) for name, text in texts.items()), malformed.alias(MALFORMED))


def _is_replaced() -> Column:
    """Returns True if a text of the payload has the mark that stands for what was no text."""
    mark = F.lit(REPLACED)
    key, value = F.col("key").cast("string"), F.col("value").cast("string")
    headers = F.exists(
        "headers", lambda each: F.contains(each["key"], mark) | _is_replaced_text(each["value"])
    )
    return (
        F.contains(value, mark)
        | F.coalesce(
            F.is_valid_utf8(key) & ~F.contains(key, F.lit("\0")) & F.contains(key, mark),
            F.lit(False),
        )
        | F.coalesce(headers, F.lit(False))
    )


def _is_replaced_text(value: Column) -> Column:
    text = value.cast("string")
    return F.coalesce(F.is_valid_utf8(text) & F.contains(text, F.lit(REPLACED)), F.lit(False))


def _is_too_large(contract: Contract) -> Column:
    """Returns True if the message with what the broker says of it has more bytes than a row may."""
    value, whole = F.octet_length("value"), F.rtrim(WRITTEN, F.lit(WHITE))
    most = (
        value + 6 * F.coalesce(F.octet_length("key"), F.lit(0)) + 6 * F.octet_length("topic") + 200
    )
    is_short = F.coalesce(F.size("headers") <= 0, F.lit(True)) & (most <= contract.max_row_bytes)
    # As ["name","text"], which is a byte more; two of them are numbers.
    said = F.transform(
        said_by_broker(),
        lambda each: F.octet_length(F.to_json(F.array(each["key"], each["value"]))) - 1,
    )
    count = F.aggregate(said, F.octet_length(whole) - 4, lambda count, each: count + each)
    return F.coalesce(~is_short & (count > contract.max_row_bytes), F.lit(False))


CELLS: Final = "_cells"
"""The text of each field of a message."""
SOUND: Final = "_sound"
BARRIER: Final = "_barrier"


def real_time_rows(spark: SparkSession, ingest: Ingest, settings: Mapping[str, str]) -> DataFrame:
    """An unbounded DataFrame of the contract's fields and `flags`, a row each sound message.

    No watermark decides here: late messages are among them. `settings` are those of Kafka's Java
    client.

    Raises:
        DeclarationError: the source is no `KafkaSource` of JSON, makes rows of tombstones, or
            starts at the offsets of a consumer group.
    """
    source = ingest.source
    if not isinstance(source, KafkaSource) or source.format != "json":
        raise DeclarationError(
            f"stream '{ingest.name}': only JSON messages of a KafkaSource are read in real time"
        )
    if source.key_format != "text":
        raise DeclarationError(
            f"stream '{ingest.name}': in real time keys can only be read as text (key_format)"
        )
    if source.tombstones == "rows":
        raise DeclarationError(
            f"stream '{ingest.name}': in real time tombstones are skipped, so the source "
            "cannot have tombstones='rows'"
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
    return sound_rows(messages, ingest.contract)


def sound_rows(messages: DataFrame, contract: Contract) -> DataFrame:
    """The contract's fields and `flags` of each message that admission would not quarantine."""
    raw = {
        "payload": F.col("value").cast("string"),
        "_format": F.lit("json"),
        "_columns": F.lit(None).cast("string"),
        "_file": F.col("topic"),
        "_row": F.col("offset"),
        "_landed_at": _now(),
    }
    named = [column.alias(name) for name, column in raw.items()]
    cut = with_objects(messages, contract).select(*named, cells(contract).alias(CELLS))
    values = [value_of(f, F.col(CELLS)[f.name]).alias(f.name) for f in contract.fields]
    typed = cut.select(*raw, CELLS, *values).select(
        *raw,
        *(f.name for f in contract.fields),
        F.array().cast("array<string>").alias(FLAGS),
        F.when(_is_sound(contract), F.array().cast("array<string>"))
        .otherwise(F.array(F.lit("unsound")))
        .alias(PROBLEMS),
        F.col(CELLS)[MALFORMED].isNull().alias(WHOLE),
    )
    ruled = with_rules_in_real_time(typed, contract)
    fields = [field.name for field in contract.fields]
    sound = (F.trim("payload") != "") & (F.size(PROBLEMS) == 0)
    # Spark would move a filter below the parser, with all of its expressions written out where a
    # column stood: planning takes minutes then. It moves none below what is not deterministic.
    barrier = F.spark_partition_id() >= 0
    kept = ruled.select(*fields, FLAGS, sound.alias(SOUND), barrier.alias(BARRIER))
    return kept.where(F.col(SOUND) & F.col(BARRIER)).select(*fields, FLAGS)


def _is_sound(contract: Contract) -> Column:
    """Returns True if a message has none of the problems that a row may have but for its rules."""
    cells, time = F.col(CELLS), F.col(contract.event_time)
    sound = cells[MALFORMED].isNull() & ~F.contains("payload", F.lit(REPLACED))
    for field in contract.fields:
        is_read = F.col(field.name).isNotNull()
        sound &= is_read if field.required else is_read | cells[field.name].isNull()
    first = max(contract.earliest, IMPOSSIBLE)
    in_time = (time >= F.lit(first)) & (time <= F.col("_landed_at") + F.lit(contract.max_ahead))
    return F.coalesce(sound & in_time, F.lit(False))


def _now() -> Column:
    """The moment at which the message is read.

    A batch lasts for minutes, and `current_timestamp` is that of its start: many messages would be
    called ahead of their time. It would also be a constant of the generated code, which would be
    compiled again, and run slowly again, in each batch.
    """
    millis = F.reflect(F.lit("java.lang.System"), F.lit("currentTimeMillis"))
    return F.timestamp_millis(millis.cast("long"))


def _start(stream: str, start: Start) -> dict[str, str]:
    if isinstance(start, str):
        return {"startingOffsets": start}
    if isinstance(start, datetime):
        millis = str(int(start.timestamp() * 1000))
        return {"startingTimestamp": millis, "startingOffsetsByTimestampStrategy": "latest"}
    if isinstance(start, ConsumerGroup):
        raise DeclarationError(
            f"stream '{stream}': in real time a start is a time, offsets, earliest or latest; "
            f"it cannot be that of the consumer group '{start.name}'"
        )
    return {"startingOffsets": json.dumps(start)}
