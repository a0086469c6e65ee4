"""Declarations of a sink to a topic: what is refused, without a broker."""

from __future__ import annotations

import pytest

from rivermark import DeclarationError, KafkaSink
from tests.unit.sinks.conftest import FARES


def test_columns_that_the_table_does_not_have_are_refused() -> None:
    with pytest.raises(DeclarationError, match="no column 'moment'"):
        KafkaSink(topic="fares", timestamp="moment").check(FARES)
    assert KafkaSink(topic="fares").described() == (
        "Kafka topic fares of 127.0.0.1:9092: exactly once, by a transaction that holds rows and "
        "batch; read committed messages only; a recompute skips"
    )


def test_a_value_that_does_not_fit_is_named_with_its_sink_and_line() -> None:
    with pytest.raises(
        DeclarationError, match=r"sink 'fares': `key` is one text .*_kafka\.py, line"
    ):
        KafkaSink(topic="fares", key="ride")  # type: ignore[arg-type]
    with pytest.raises(
        DeclarationError, match=r"sink 'fares': it has no `keys`; did you mean 'key'"
    ):
        KafkaSink(topic="fares", keys=("ride",))  # type: ignore[call-arg]
