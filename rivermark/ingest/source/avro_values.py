"""Values of Avro's logical types and maps: none raises, and none is changed in silence.

fastavro's own readers raise for a time beyond the year 9999, which costs one wild row's whole file,
round a decimal to the digits that its schema names, give a float the digits of a double that it
never had, and keep the last of equal keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import numpy as np
from fastavro._read_py import maybe_promote
from fastavro.read import LOGICAL_READERS

from rivermark.model.json_text import far_date, far_time
from rivermark.model.time import DAY, EPOCH

OWN: Final = "rivermark-"
"""Before the names of logical types in a marked schema. Others in this process keep fastavro's."""
PLAIN: Final = ("int", "long", "string", "bytes", "fixed")
"""Types whose values a logical type may change."""
UNIT: Final = re.compile("-(millis|micros|nanos)$")
ENDLESS: Final = "endless"

Read = Callable[..., Any]
"""The value of what the base type holds, by the schema that it was written with."""


class RepeatedKey(str):
    """A key of a map that has it twice: as a dictionary's key it equals no other."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def is_endless(schema: Any) -> bool:
    """Returns True if a record of a parsed schema may hold another one of its type, without end.

    fastavro's reader in C follows those until its stack ends, and the process with it.
    """
    return ENDLESS in _kinds_of(schema)


def _kinds_of(schema: Any, around: frozenset[str] = frozenset()) -> Iterator[str]:
    """The types in a schema; `ENDLESS` for the name of a type that the place is within."""
    if isinstance(schema, list):
        for each in schema:
            yield from _kinds_of(each, around)
    elif isinstance(schema, dict):
        inside = around | {schema["name"]} if "name" in schema else around
        parts = [schema[part] for part in ("type", "items", "values") if part in schema]
        for part in (*parts, *(field["type"] for field in schema.get("fields", ()))):
            yield from _kinds_of(part, inside)
    else:
        yield ENDLESS if schema in around else schema


def mark(schema: Any, *, every: bool = False) -> Any:
    """The parsed schema, changed in place, so that what is read by it has these values.

    With `every`, also what has no logical type is marked: then the reader's schema may give one.
    """
    if isinstance(schema, str) and (schema == "float" or (every and schema in PLAIN)):
        schema = {"type": schema}
    if isinstance(schema, list):
        schema[:] = [mark(each, every=every) for each in schema]
    if not isinstance(schema, dict):
        return schema
    for field in schema.get("fields", ()):
        field["type"] = mark(field["type"], every=every)
    for part in ("items", "values"):
        if part in schema:
            schema[part] = mark(schema[part], every=every)
    kind, own = schema["type"], f"{OWN}{schema.get('logicalType')}"
    if kind == "float":
        schema["logicalType"] = f"{OWN}single"
    elif kind == "map":
        # The same bytes, as a list of records: so that a key that is there twice is seen.
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": schema["values"]}]
        entry = {"type": "record", "name": "entry", "fields": fields}
        schema.update(type="array", items=entry, logicalType=f"{OWN}map")
    elif f"{kind}-{own}" in LOGICAL_READERS:
        schema["logicalType"] = own
    elif every and kind in PLAIN:
        schema["logicalType"] = f"{OWN}plain"
    return schema


def _resolved(value: Any, written: Any = None, wanted: Any = None) -> Any:
    """A value by the logical type of the schema that it is read as, else by its own.

    Where both are times, or decimals, its own says in which unit or with which scale it came; a
    float keeps its digits as a double.
    """
    schema = wanted if isinstance(wanted, dict) else written
    if wanted == "double" and written["type"] != "float":
        schema = {"type": wanted}
    promoted = maybe_promote(value, written["type"], schema["type"])  # type: ignore[no-untyped-call]
    if _family(schema) == _family(written):
        schema = written
    read = READERS.get(f"{schema['type']}-{schema.get('logicalType')}")
    return promoted if read is None else read(promoted, schema)


def _family(schema: Mapping[str, Any]) -> str:
    return UNIT.sub("", str(schema.get("logicalType")))


def _single(value: float, *_: Any) -> float:
    # The double with the digits of the float: 0.0025, and not 0.0024999999441206455.
    return float(str(np.float32(value)))


def _time(per_second: int, unit: str, zone: tzinfo | None) -> Read:
    epoch = EPOCH.replace(tzinfo=zone)

    def read(ticks: int, *_: Any) -> datetime | str:
        try:
            return epoch + timedelta(microseconds=ticks * 1_000_000 // per_second)
        except OverflowError:
            return far_time(ticks, unit) + ("Z" if zone else "")

    return read


def _time_of_day(per_second: int, unit: str) -> Read:
    def read(ticks: int, *_: Any) -> object:
        if not 0 <= ticks < DAY.total_seconds() * per_second:
            return f"{ticks} {unit}"
        return (EPOCH + timedelta(microseconds=ticks * 1_000_000 // per_second)).time()

    return read


def _date(days: int, *_: Any) -> date | str:
    try:
        return date.fromordinal(EPOCH.toordinal() + days)
    except (OverflowError, ValueError):
        return far_date(days)


def _decimal(digits: bytes, schema: Mapping[str, Any], *_: Any) -> Decimal | str:
    try:
        unscaled = str(int.from_bytes(digits, "big", signed=True)) if digits else "no digits"
        return Decimal(f"{unscaled}e-{schema.get('scale', 0)}")
    except (ArithmeticError, ValueError):
        return f"{len(digits)} bytes"


def _uuid(text: str, *_: Any) -> UUID | str:
    try:
        return UUID(text)
    except ValueError:
        return text


def _uuid_of_bytes(content: bytes, *_: Any) -> UUID | bytes:
    return UUID(bytes=content) if len(content) == 16 else content


def _map(entries: Sequence[Mapping[str, Any]], *_: Any) -> dict[str, Any]:
    values = {entry["key"]: entry["value"] for entry in entries}
    if len(values) == len(entries):
        return values
    return {RepeatedKey(entry["key"]): entry["value"] for entry in entries}


UNITS: Final = {
    "millis": (1_000, "ms"),
    "micros": (1_000_000, "us"),
    "nanos": (1_000_000_000, "ns"),
}
READERS: Final[dict[str, Read]] = {
    f"float-{OWN}single": _single,
    **{f"long-{OWN}timestamp-{name}": _time(*unit, UTC) for name, unit in UNITS.items()},
    **{f"long-{OWN}local-timestamp-{name}": _time(*unit, None) for name, unit in UNITS.items()},
    f"int-{OWN}time-millis": _time_of_day(*UNITS["millis"]),
    f"long-{OWN}time-micros": _time_of_day(*UNITS["micros"]),
    f"int-{OWN}date": _date,
    f"bytes-{OWN}decimal": _decimal,
    f"fixed-{OWN}decimal": _decimal,
    f"string-{OWN}uuid": _uuid,
    f"fixed-{OWN}uuid": _uuid_of_bytes,
    f"array-{OWN}map": _map,
}
LOGICAL_READERS.update(dict.fromkeys(READERS, _resolved))
LOGICAL_READERS.update(dict.fromkeys((f"{kind}-{OWN}plain" for kind in PLAIN), _resolved))
