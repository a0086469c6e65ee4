"""Texts of the fields of a message, by Spark's own expressions, as the cutter makes them.

The columns of Spark's Kafka source go in. What comes out is what the cutter gives for the payload
that a `KafkaSource` makes of the message.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.ingest.parse.cutter import MALFORMED, TOO_LARGE, UNDECODABLE, UNPARSABLE, Spelled
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
from rivermark.model.contract import Contract

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
