"""Records that are no text become JSON payloads, which the parser reads as it reads landed JSON."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyspark.sql import Row


def json_payload(record: Mapping[str, Any]) -> str:
    """A record as one JSON object: times as ISO-8601 text, bytes as base64."""
    return json.dumps(_plain(record), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    match value:
        case Row():
            return _plain(value.asDict())
        case Mapping():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case float() if not math.isfinite(value):
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case _:
            return value
