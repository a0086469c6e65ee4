"""JSON of values: one value has one text, whatever format it came in and wherever it goes.

| value | text |
| --- | --- |
| whole number | all digits, also beyond 64 bits |
| double, float | the fewest digits that mean it as such: `7.2`, `10000000000.0`, `1e16` |
| NaN, infinities | `"NaN"`, `"Infinity"`, `"-Infinity"`: JSON has no such numbers |
| decimal | all digits, with its scale, as text: `"12.50"` |
| instant | ISO 8601 in UTC with `Z`, six digits of a fraction or none: `2024-03-01T10:07:10Z` |
| wall-clock time, date, time of day | ISO 8601 likewise, without a zone |
| bytes | base64 |
| list, map, struct | array, object, object, without spaces |

`rivermark.lake.json_columns` writes the same texts of whole Arrow columns.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from rivermark.model.time import EPOCH

PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ERA_DAYS: Final = 146_097
"""Days of four hundred years, after which the calendar repeats itself."""
_encode: Final = msgspec.json.Encoder(enc_hook=str).encode
_OFFSET: Final = re.compile(rb':[0-9]{2}"(?<=[+-][0-9]{2}:[0-9]{2}")')
"""What stands behind a time that is not in UTC."""
_PLAIN: Final = {str, int, bool, bytes, date, type(None)}
_SCALARS: Final = {float, Decimal, datetime, timedelta}
"""Types whose values msgspec has other texts for: some of them."""
_SPAN: Final = re.compile(rb'"-?P[0-9T]')
_MOST_DIGITS: Final = 400
"""Beyond so many zeros a decimal keeps its exponent: written out it could fill the memory."""


def json_text(value: Any) -> bytes:
    """The value in JSON, as UTF-8; what no type of JSON stands for is its `str`.

    >>> json_text({"kelvin": [1.5, float("inf")]})
    b'{"kelvin":[1.5,"Infinity"]}'
    """
    try:
        text = _encode(value)
        if _is_exact(value, text):
            return text
        return _encode(_plain(value))
    except UnicodeEncodeError:
        # Half a character as its escape, with which no text of a field is read.
        plain = msgspec.to_builtins(_plain(value), enc_hook=_other, str_keys=True)
        return json.dumps(plain, separators=(",", ":")).encode()
    except (TypeError, OverflowError):
        return _encode(_plain(value))


def _is_exact(value: Any, text: bytes) -> bool:
    """Returns True if msgspec wrote the value as this module does."""
    parts = value.values() if type(value) is dict else (value,)
    odd = {*map(type, parts)} - _PLAIN
    if not odd <= _SCALARS:
        odd = _SCALARS  # There may be any within another one.
    return not (
        (timedelta in odd and _SPAN.search(text))
        or (datetime in odd and _OFFSET.search(text))
        or (Decimal in odd and (b"E+" in text or b"E-" in text))
        # One may stand for a NaN, or for an infinity.
        or (
            float in odd
            and b"null" in text
            and text.count(b"null") != sum(part is None for part in parts)
        )
    )


def far_time(ticks: int, unit: str) -> str:
    """A time of any year by its seconds, or parts of them, since 1970: as `far_date` has its date.

    >>> far_time(253_402_300_800_000, "ms")
    '+10000-01-01T00:00:00'
    """
    seconds, rest = divmod(ticks, PER_SECOND[unit])
    days, second = divmod(seconds, 86_400)
    clock = time(second // 3600, second // 60 % 60, second % 60, rest * 10**6 // PER_SECOND[unit])
    return f"{far_date(days)}T{clock}"


def far_date(days: int) -> str:
    """A date of any year by its days since 1970, with a sign before a year that is not 0 to 9999.

    >>> far_date(-719_528), far_date(-734_868)
    ('0000-01-01', '-0042-01-01')
    """
    eras, day = divmod(days, ERA_DAYS)
    near = date.fromordinal(EPOCH.toordinal() + day)
    year = near.year + 400 * eras
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{near.month:02d}-{near.day:02d}"


def _plain(value: Any) -> Any:
    """The value as msgspec writes it rightly: with texts for what JSON lacks, and times in UTC."""
    match value:
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case int() if not -(2**63) <= value < 2**64:
            return msgspec.Raw(str(value).encode())
        case Decimal() if value.is_finite() and abs(int(value.as_tuple().exponent)) < _MOST_DIGITS:
            return f"{value:f}"
        case datetime() if value.utcoffset():
            try:
                return value.astimezone(UTC)
            except OverflowError:
                return value
        case timedelta():
            return str(value)
        case Mapping():
            # A text is left as it is: keys that are there twice are texts of a kind of their own.
            keys = (key if isinstance(key, str) else str(key) for key in value)
            return dict(zip(keys, map(_plain, value.values()), strict=True))
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def _other(value: Any) -> Any:
    return int(bytes(value)) if isinstance(value, msgspec.Raw) else str(value)
