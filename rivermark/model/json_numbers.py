"""Numbers that JSON lacks."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec


def with_json_numbers(value: Any) -> Any:
    """The value with NaN and the infinities, however deep, as texts that name them.

    >>> with_json_numbers({"kelvin": [1.5, float("inf")]})
    {'kelvin': [1.5, 'Infinity']}
    """
    match value:
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case dict():
            return {key: with_json_numbers(each) for key, each in value.items()}
        case list() | tuple():
            return [with_json_numbers(each) for each in value]
        case _:
            return value


def json_text(value: Any) -> bytes:
    """The value in JSON, with texts for the numbers that it lacks: msgspec makes them null."""
    text = msgspec.json.encode(value)
    return msgspec.json.encode(with_json_numbers(value)) if b"null" in text else text
