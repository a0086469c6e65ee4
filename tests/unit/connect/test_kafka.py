"""M045: settings copied from another client that would undo what is promised."""

from __future__ import annotations

import pytest

from rivermark import DeclarationError
from rivermark.sinks import KafkaSink
from rivermark.sources import KafkaSource


@pytest.mark.parametrize(
    "name",
    [
        "group.id",
        "enable.auto.commit",
        "auto.offset.reset",
        "enable.partition.eof",
        "isolation.level",
        "bootstrap.servers",
    ],
)
def test_m045_a_source_refuses_what_moves_positions_or_ends_of_ranges(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"source of t: leave the setting '{name}' out: "):
        KafkaSource(topics="t", settings={name: "x"})


@pytest.mark.parametrize("name", ["transactional.id", "acks", "enable.idempotence"])
def test_m045_a_sink_refuses_what_undoes_exactly_once(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"sink to t: leave the setting '{name}' out: "):
        KafkaSink(topic="t", settings={name: "x"})


def test_m045_a_misspelt_setting_is_named_with_the_right_one() -> None:
    with pytest.raises(
        DeclarationError, match=r"no setting 'fetch.wait.max.mss'; did you mean 'fe"
    ):
        KafkaSource(topics="t", settings={"fetch.wait.max.mss": "1"})
    with pytest.raises(DeclarationError, match=r"did you mean 'security.protocol'\?"):
        KafkaSink(topic="t", settings={"security.protocoll": "SSL"})
    # The client knows more than stand here.
    KafkaSource(topics="t", settings={"ssl.ca.certificate.stores": "x", "sasl.username": "a"})
