"""Events and keys in JSON, as dead letters keep them until they are replayed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from rivermark.model.json_text import json_text

NUMBERS: Final = {text: float(text) for text in ("NaN", "Infinity", "-Infinity")}
"""The texts that stand for numbers that JSON lacks."""


def to_json(value: Any) -> str:
    """An event or key in JSON; raises TypeError or ValueError where it has none."""
    if isinstance(value, msgspec.Raw):
        return bytes(value).decode()
    return json_text(msgspec.to_builtins(value, str_keys=True)).decode()


def of_json(text: str | bytes, kind: Any) -> Any:
    """The value of a type from what `to_json` has written.

    Raises:
        msgspec.DecodeError: it is none.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        with suppress(msgspec.ValidationError):
            return msgspec.convert(_with_numbers(msgspec.json.decode(text)), kind, str_keys=True)
        raise


def _with_numbers(value: Any) -> Any:
    match value:
        case str():
            return NUMBERS.get(value, value)
        case dict():
            return {key: _with_numbers(each) for key, each in value.items()}
        case list():
            return [_with_numbers(each) for each in value]
        case _:
            return value
