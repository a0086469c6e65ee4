"""Members of a message one by one, where it is not enough to take them by their names.

So it is with headers, names in another letter case or with escapes, and lists and objects in text
fields, which are kept as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StringType

from rivermark.ingest.parse.cutter import Spelled
from rivermark.ingest.real_time.objects import (
    AROUND,
    EXACT,
    INSIDE,
    OWN,
    WHITE,
    WRITTEN,
    exact,
    read,
)
from rivermark.model.contract import Contract
from rivermark.model.field_readers import TextReader

FLAT: Final = "_flat"
"""The message with a word for each list and object, where names or texts have to be looked at."""
MEMBERS: Final = "_members"
INNER: Final = f"_inner_{OWN}"
NESTED: Final = rf"\G((?:^\{{)?+{AROUND})({INSIDE})"
"""A list or an object among the members of an object, behind what is none."""
HEADER: Final = "_header."
OBJECT: Final = "_json"
BYTES: Final = "_bytes"
"""Suffix of the name of a key or a header whose bytes are no text."""
MEMBER_LIST: Final = "array<struct<key:string,value:string>>"


def members_of() -> Column:
    """All members of an object, and what the broker says; lists and objects as they are written."""
    own = F.map_entries(
        F.get(read(exact(F.col(FLAT)), MapType(StringType(), StringType())), F.lit(0))
    )
    written = F.regexp_extract_all(WRITTEN, F.lit(NESTED), F.lit(2))

    def as_written(member: Column, place: Column) -> Column:
        before = F.filter(F.slice(own, 1, place), lambda each: each["value"] == INNER)
        text = F.when(member["value"] == INNER, F.get(written, F.size(before)))
        return F.struct(
            member["key"].alias("key"), F.coalesce(text, member["value"]).alias("value")
        )

    plain = F.when(F.contains(FLAT, F.lit(INNER)), F.transform(own, as_written)).otherwise(own)
    return F.when(F.col(FLAT).isNotNull(), F.concat(plain, said_by_broker()))


def is_odd(contract: Contract, keys: Sequence[str]) -> Column:
    """Returns True if a field may be a header, a list or an object, or spelled otherwise."""
    names = "|".join(map(re.escape, keys))
    end = rf'"[{WHITE}]*+:'
    longest = 6 * max(map(len, keys))
    text = F.col(EXACT)
    # A field's own name counts before all others, so these are looked for where it has no value.
    lacks = [text_of(Spelled.of(field).keys[0]).isNull() for field in contract.fields]
    other_case = text.rlike(rf'"(?!(?:{names})")(?iu:{names}){end}')
    escaped = text.rlike(rf'\\.(?:[^"\\]|\\.){{0,{longest}}}+{end}')
    odd = (reduce(or_, lacks) & other_case) | (F.contains(text, F.lit("\\")) & escaped)
    if any(key.startswith(HEADER) for key in keys):
        odd |= F.coalesce(F.size("headers") > 0, F.lit(False))
    texts = [
        text_of(k)
        for f in contract.fields
        if isinstance(f.reader, TextReader)
        for k in Spelled.of(f).keys
    ]
    for text in texts:
        odd |= F.coalesce(text.substr(1, 1).isin("[", "{"), F.lit(False))
    return odd


def last_member(key: str) -> Column:
    """The last member of a name; none of it, and in lower case, one in any letter case."""
    own = F.filter(MEMBERS, lambda each: each["key"] == key)
    value = F.try_element_at(own, F.lit(-1))["value"]
    if key != key.lower():
        return value
    others = F.filter(MEMBERS, lambda each: F.lower(each["key"]) == key)
    return F.when(F.size(own) > 0, value).otherwise(F.try_element_at(others, F.lit(-1))["value"])


def said_by_broker() -> Column:
    """The broker's own columns and the headers of a message, as members of its object."""
    known = [
        F.struct(F.lit(name).alias("key"), text().alias("value")) for name, text in KNOWN.items()
    ]
    said = F.filter(F.array(*known), lambda each: each["value"].isNotNull())
    headers = F.coalesce(F.transform("headers", _header), F.array())
    return F.concat(said, headers.cast(MEMBER_LIST))


def _header(header: Column) -> Column:
    """The member of a header: one whose bytes are no text has another name."""
    name, text = F.concat(F.lit(HEADER), header["key"]), header["value"].cast("string")
    is_text = F.coalesce(F.is_valid_utf8(text), F.lit(True))
    return F.struct(
        F.when(is_text, name).otherwise(F.concat(name, F.lit(BYTES))).alias("key"),
        F.when(is_text, text).otherwise(F.base64(header["value"])).alias("value"),
    )


def text_of(name: str) -> Column:
    """The text of one spelling: what the broker says, as for admission, or a member."""
    member = F.col(OBJECT)[name]
    if name in KNOWN:
        return F.coalesce(KNOWN[name](), member)
    return member


def _key(name: str) -> Column:
    """The message's key by one of its two names."""
    text = F.col("key").cast("string")
    is_text = F.is_valid_utf8(text) & ~F.contains(text, F.lit("\0"))
    if name.endswith(BYTES):
        return F.when(~is_text, F.base64("key"))
    return F.when(is_text, text)


KNOWN: Final[dict[str, Callable[[], Column]]] = {
    "_topic": lambda: F.col("topic"),
    "_partition": lambda: F.col("partition").cast("string"),
    "_offset": lambda: F.col("offset").cast("string"),
    "_timestamp": lambda: F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
    "_key": lambda: _key("_key"),
    "_key_bytes": lambda: _key("_key_bytes"),
}
"""Columns that the broker adds to a message, by the names that a `KafkaSource` gives it."""
