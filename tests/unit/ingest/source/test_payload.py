"""Records of any source as JSON: no value of a column stops its stream."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Any

import numpy as np
import pytest

from rivermark.ingest.source.payload import json_payload


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (datetime(2024, 3, 1, tzinfo=UTC), "2024-03-01T00:00:00Z"),
        (Decimal("1.10"), "1.10"),
        (float("nan"), "NaN"),
        (bytearray(b"\xff"), "/w=="),
        (memoryview(b"\xff"), "/w=="),
        (timedelta(hours=25), "1 day, 1:00:00"),
        (IPv4Address("10.0.0.1"), "10.0.0.1"),
        (np.int64(5), "5"),
        ({1}, [1]),
        (OrderedDict({1: [(None, True)]}), {"1": [[None, True]]}),
        ("Zoë", "Zoë"),
        ("half \ud83d", "half \ud83d"),
    ],
)
def test_a_value_of_any_type_is_a_text_or_what_json_has(value: object, found: Any) -> None:
    payload = json_payload({"v": value})
    assert json.loads(payload) == {"v": found}
    payload.encode()
