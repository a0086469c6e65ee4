import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rivermark.cli.session import JavaMissing, check_java, logs_to
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.hosting import stop_on_signals
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


def test_what_a_child_says_goes_to_the_log_and_not_to_the_console(tmp_path: Path) -> None:
    script = f"""
import subprocess, sys
from pathlib import Path
from rivermark.cli.session import logs_to
with logs_to(Path({str(tmp_path / "logs" / "spark.log")!r})) as console:
    subprocess.run("echo said; echo warned >&2", shell=True)
    console.print("still here")
print("after")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "after\n"
    assert done.stderr == "still here\n"
    assert (tmp_path / "logs" / "spark.log").read_text() == "said\nwarned\n"


def test_the_console_comes_back_after_a_failed_start(tmp_path: Path) -> None:
    before = os.fstat(2)

    with pytest.raises(ZeroDivisionError), logs_to(tmp_path / "spark.log"):
        raise ZeroDivisionError

    assert os.fstat(2).st_ino == before.st_ino
