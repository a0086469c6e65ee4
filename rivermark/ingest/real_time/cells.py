"""Texts of the fields of a message, by Spark's own expressions, as the cutter makes them.

The columns of Spark's Kafka source go in. What comes out is what the cutter gives for the payload
that a `KafkaSource` makes of the message; only a list or an object in a text field is written as
Spark writes it.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from rivermark.ingest.parse.cutter import MALFORMED, TOO_LARGE, UNDECODABLE, UNPARSABLE, Spelled
from rivermark.model.contract import Contract

OBJECTS: Final = "_objects"
"""The message as a list: one object, if it is sound, and ours."""
LAST: Final = f"_last_{uuid4().hex}"
HEADER: Final = "_header."
OBJECT: Final = "_json"
BYTES: Final = "_bytes"
"""Suffix of the name of a key or a header whose bytes are no text."""
HALF_A_CHARACTER: Final = (
    # Behind an even number of backslashes; a low half after a high one is a whole character.
    r"(?<!\\)(?:\\\\)*+\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u)[dD][c-fC-F])"
)
"""An escape such as \\ud800 alone, which UTF-8 cannot hold: Spark reads a question mark."""
NUMBER: Final = (
    # From where the last one ended: texts and all that begins no number, then a number as a value.
    r'\G((?:"(?:[^"\\]++|\\.)*+"|[^"0-9\-]++|-(?![0-9]))*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+\-]?[0-9]++)?+)(?=[ \t\r\n]*+[,}\]])"
)
"""A number of a JSON object. Its cost grows with the length of what stands before it."""
SPACE: Final = " \t\r\n\ufeff"


def with_objects(messages: DataFrame, contract: Contract) -> DataFrame:
    """The messages with what `cells` takes from them."""
    objects = messages.withColumn(OBJECTS, _objects(contract))
    return objects.withColumn(OBJECT, F.get(OBJECTS, F.lit(0)))


def _objects(contract: Contract) -> Column:
    """The members by which fields are spelled, as texts, of each object that a message holds.

    As a list, because of a message alone Spark reads what comes first, and passes over the rest.
    The list's last object is ours: Spark has come to it only if no bracket of the message closed
    the list before (R02). Its key is drawn by each process, so that no message can have it.
    Numbers become texts before they are read: Spark would make them of their doubles.
    """
    names = {name for field in contract.fields for name in Spelled.of(field).spellings}
    members = [StructField(name, StringType()) for name in [*sorted(names), LAST]]
    value = F.ltrim(F.col("value").cast("string"), F.lit(SPACE))
    exact = F.regexp_replace(value, NUMBER, '$1"$2"')
    whole = F.concat(F.lit("["), exact, F.lit(f',{{"{LAST}":1}}]'))
    return F.from_json(whole, ArrayType(StructType(members)), {"allowSingleQuotes": "false"})


def cells(contract: Contract) -> Column:
    """The cutter's texts of a message, one a field, and why it is malformed."""
    texts = []
    for field in map(Spelled.of, contract.fields):
        text = F.coalesce(*map(_text, field.spellings))
        texts.append(F.when(~F.trim(text).isin(*field.nulls), text).alias(field.name))
    value = F.col("value").cast("string")
    too_large = F.octet_length("value") > contract.max_row_bytes
    ended = F.get(OBJECTS, F.lit(1))[LAST].isNotNull()
    one = (F.size(OBJECTS) == 2) & ended & F.col(OBJECT).isNotNull() & F.is_valid_utf8(value)
    no_json = ~F.coalesce(one & F.endswith(F.rtrim(value, F.lit(SPACE)), F.lit("}")), F.lit(False))
    odd_header = F.exists("headers", lambda header: F.contains(header["key"], F.lit("\ufffd")))
    halves = F.contains(value, F.lit("\\u")) & value.rlike(HALF_A_CHARACTER)
    malformed = (
        F.when(too_large, TOO_LARGE)
        .when(no_json, UNPARSABLE)
        .when(odd_header, UNPARSABLE)
        .when(halves, UNDECODABLE)
    )
    return F.struct(*texts, malformed.alias(MALFORMED))


def _text(name: str) -> Column:
    """The text of one spelling: what the broker says, as for admission, or a member."""
    member = F.col(OBJECT)[name]
    if name in KNOWN:
        return F.coalesce(KNOWN[name](), member)
    if name.startswith(HEADER):
        own = F.filter("headers", lambda header: _named(header, name))
        # The last one counts, also where it has no value.
        last = F.try_element_at(own, F.lit(-1))["value"]
        return F.when(F.size(own) > 0, _content(last, name)).otherwise(member)
    return member


def _named(header: Column, name: str) -> Column:
    """Returns True if a header goes by that name: one whose value is no text has another one."""
    key, value = header["key"], header["value"]
    is_text = F.coalesce(F.is_valid_utf8(value.cast("string")), F.lit(True))
    plain = (key == name.removeprefix(HEADER)) & is_text
    if not name.endswith(BYTES):
        return plain
    return plain | ((key == name.removeprefix(HEADER).removesuffix(BYTES)) & ~is_text)


def _content(value: Column, name: str) -> Column:
    """Bytes as text, and those that are none as base64 where the name says so."""
    text = value.cast("string")
    if not name.endswith(BYTES):
        return text
    return F.when(F.is_valid_utf8(text), text).otherwise(F.base64(value))


def _key(name: str) -> Column:
    """The message's key by one of its two names."""
    text = F.col("key").cast("string")
    is_text = F.is_valid_utf8(text) & ~F.contains(text, F.lit("\0"))
    if name.endswith(BYTES):
        return F.when(~is_text, F.base64("key"))
    return F.when(is_text, text)


KNOWN: Final = {
    "_topic": lambda: F.col("topic"),
    "_partition": lambda: F.col("partition").cast("string"),
    "_offset": lambda: F.col("offset").cast("string"),
    "_timestamp": lambda: F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
    "_key": lambda: _key("_key"),
    "_key_bytes": lambda: _key("_key_bytes"),
}
"""Columns that the broker adds to a message, by the names that a `KafkaSource` gives it."""
