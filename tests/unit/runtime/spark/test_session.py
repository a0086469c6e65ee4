"""The settings of a session whose streams have queries in real time."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermark.runtime.spark import session
from rivermark.runtime.spark.session import spark_conf, with_slots
from rivermark.settings import Settings


@pytest.mark.parametrize(
    ("master", "more"),
    [
        ("local", "local[4]"),
        ("local[2]", "local[5]"),
        ("local[2, 4]", "local[5, 4]"),
        ("spark://host:7077", "spark://host:7077"),
    ],
)
def test_tasks_that_wait_for_messages_get_slots_of_their_own(master: str, more: str) -> None:
    assert with_slots(master, 3) == more
    assert with_slots(master, 0) == master


def test_the_connector_for_kafka_is_for_sessions_that_need_it_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[str, ...]] = []

    def options(*_: object, connectors: tuple[str, ...], **__: object) -> dict[str, str]:
        asked.append(connectors)
        return {}

    monkeypatch.setattr(session, "driver_options", options)
    settings = Settings(home=tmp_path, master="local[2]")
    masters = [spark_conf(settings, "long", slots)["spark.master"] for slots in (0, 2)]
    assert masters == ["local[2]", "local[4]"]
    assert asked == [(), ("spark-kafka",)]
