"""The settings of a session whose streams have queries in real time."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rivermark.model.errors import RivermarkError
from rivermark.runtime.spark import session
from rivermark.runtime.spark.cluster import check_executors
from rivermark.runtime.spark.session import no_jvm_left, spark_conf, with_slots
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


def test_a_cluster_gets_memory_zone_and_address_of_its_executors(tmp_path: Path) -> None:
    remote = Settings(home=tmp_path, master="spark://10.0.0.5:7077", executor_memory="4g")
    conf = spark_conf(remote)
    assert conf["spark.executor.memory"] == "4g"
    assert "-Duser.timezone=UTC" in conf["spark.executor.extraJavaOptions"]
    assert "spark.driver.host" not in conf
    assert "spark.python.daemon.module" not in conf
    named = remote.model_copy(update={"driver_host": "10.0.0.9"})
    assert spark_conf(named)["spark.driver.bindAddress"] == "10.0.0.9"
    near = remote.model_copy(update={"master": "spark://127.0.0.1:7077"})
    assert spark_conf(near)["spark.driver.host"] == "127.0.0.1"


def test_further_settings_of_spark_win_and_those_that_days_depend_on_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVERMARK_SPARK_CONF", '{"spark.ui.enabled": "true"}')
    assert spark_conf(Settings(home=tmp_path))["spark.ui.enabled"] == "true"
    for conf, reason in (
        ({"spark.sql.session.timeZone": "Europe/Berlin"}, "is set by the platform"),
        ({"executor.cores": "4"}, "does not begin with spark."),
    ):
        with pytest.raises(RivermarkError, match=reason):
            Settings(home=tmp_path, spark_conf=conf)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            "An error occurred.\n: java.lang.IllegalStateException: SparkContext has been shutdown"
            "\n\tat java.base/java.lang.Thread.run(Thread.java:840)",
            "end as they start, and its master has given this run up",
        ),
        ("Job aborted\nModuleNotFoundError: No module named 'msgspec'\n\tat x", "named 'msgspec'"),
    ],
)
def test_executors_that_do_not_start_are_told_from_those_that_cannot_run_python(
    tmp_path: Path, error: str, text: str
) -> None:
    def fail() -> None:
        raise RuntimeError(error)

    looks: Any = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=fail))
    context = SimpleNamespace(defaultParallelism=2, parallelize=lambda *_: looks)
    session: Any = SimpleNamespace(sparkContext=context)

    with pytest.raises(RivermarkError, match=text):
        check_executors(session, Settings(home=tmp_path, master="spark://10.0.0.5:7077"))


def test_a_jvm_whose_start_is_broken_off_is_killed_and_no_other_process() -> None:
    """One stayed for 46 minutes after Ctrl-C (issue 25, clause 8)."""

    def child(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", "input()", name], stdin=subprocess.PIPE)

    def broken_off() -> None:
        children.extend((child("spark"), child("other")))
        raise KeyboardInterrupt

    children = [child("spark")]
    try:
        with pytest.raises(KeyboardInterrupt), no_jvm_left():
            broken_off()

        assert children[1].wait(10) == -signal.SIGKILL
        assert [children[0].poll(), children[2].poll()] == [None, None]
    finally:
        for each in children:
            each.kill()
            each.communicate()
