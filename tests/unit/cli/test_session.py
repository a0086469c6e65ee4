import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkConf, SparkContext

from rivermark.cli.session import JavaMissing, check_java
from rivermark.model.topology import Topology
from rivermark.runtime.spark.session import launch_jvm
from rivermark.runtime.supervision.hosting import stop_on_signals
from rivermark.settings import Settings
from tests.unit.cli.conftest import Run


def test_without_java_nothing_is_started(
    rivermark: Run, shop: Topology, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    result = rivermark("run")

    assert result.exit_code == 1
    assert "no Java in JAVA_HOME" in result.stderr


def test_java_on_the_path_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="on the PATH"):
        check_java()

    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o755)
    check_java()


def test_missing_jars_are_one_sentence_too(
    rivermark: Run, shop: Topology, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("rivermark.cli.session.check_java", lambda: None)
    monkeypatch.setenv("RIVERMARK_CACHE", str(tmp_path / "empty"))

    result = rivermark("run")

    assert result.exit_code == 1
    assert "run `make setup`" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_asks_to_stop_and_a_second_one_interrupts(number: int) -> None:
    before = signal.getsignal(number)

    with stop_on_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)

    assert signal.getsignal(number) is before


def test_what_java_says_goes_to_the_log_and_not_to_the_console(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    launched: list[SimpleNamespace] = []

    def launch(conf: SparkConf, output: dict[str, Any]) -> SimpleNamespace:
        assert conf.get("spark.sql.session.timeZone") == "UTC"
        subprocess.run(["sh", "-c", "echo said; echo warned >&2"], check=True, **output)
        launched.append(SimpleNamespace(jvm="of this gateway"))
        return launched[-1]

    monkeypatch.setattr("rivermark.runtime.spark.session.launch_gateway", launch)
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_jvm", None)
    settings, log = Settings(home=tmp_path), tmp_path / "logs" / "spark.log"
    for _ in range(2):
        launch_jvm(settings, "short", log)

    assert len(launched) == 1, "a process has one JVM"
    assert SparkContext._jvm == "of this gateway"
    assert log.read_text() == "said\nwarned\n"
    assert capfd.readouterr() == ("", "")
