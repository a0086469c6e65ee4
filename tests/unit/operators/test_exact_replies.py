"""M009: numbers of a web service arrive as they were written."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from rivermark.operators import HttpLookup
from rivermark.operators.enrichment.lookup import LookupFailed
from tests.web_service import serving


def replied(body: bytes, columns: str) -> list[Any]:
    with serving(lambda _: (200, body)) as service:
        lookup = HttpLookup(url=f"{service.url}/{{key}}", columns=columns)
        with closing(lookup.open(["key"], timedelta(seconds=5))) as client:
            [values] = client.get([(1,)]).values()
    return list(values)


def test_m009_decimals_whole_numbers_and_texts_are_not_read_as_doubles() -> None:
    body = b'{"price": 12345678901234567.89, "id": 9007199254740993.0, "t": 1.10, "n": 7, "x": 0.1}'
    assert replied(body, "price decimal(20,2), id long, t string, n string, x double") == [
        Decimal("12345678901234567.89"),
        9007199254740993,
        "1.10",
        "7",
        0.1,
    ]


@pytest.mark.parametrize("number", [b"1.5", b"1e400", b"true"])
def test_m009_a_number_that_is_no_whole_one_is_none(number: bytes) -> None:
    with pytest.raises(LookupFailed, match="its reply does not fit"):
        replied(b'{"id": ' + number + b"}", "id long")
