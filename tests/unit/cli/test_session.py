import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyarrow import fs
from pyspark import SparkConf, SparkContext

from rivermark.cli.group import sentence_of
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
    assert "no Java was found in JAVA_HOME" in result.stderr


@pytest.mark.parametrize(
    ("release", "version"), [("11.0.24", 11), ("1.8.0_392", 8), ("17.0.15", 17), ("21", 21)]
)
def test_r19_an_older_java_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, release: str, version: int
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{release}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    if version < 17:
        with pytest.raises(JavaMissing, match=rf"the Java in JAVA_HOME .* is {version}: .* 17 or"):
            check_java()
    else:
        check_java()


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DURABLE", "ja", "RIVERMARK_DURABLE): write true or false, not 'ja'"),
        ("PAGES_PORT", "many", "RIVERMARK_PAGES_PORT): write a whole number, not 'many'"),
        ("TRIGGER_SECONDS", "soon", "RIVERMARK_TRIGGER_SECONDS): write a number, not 'soon'"),
    ],
)
def test_r19_a_setting_of_another_type_is_told_in_our_words(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(f"RIVERMARK_{name}", value)

    assert sentence in rivermark("status").stderr


def test_r19_a_home_that_cannot_be_made_is_one_sentence(
    rivermark: Run, shop: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.cli.session.check_java", lambda: None)

    result = rivermark("run", "--home", "/proc/x")

    assert result.exit_code == 1
    assert "cannot be made. Choose a home that this user can write" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_r19_a_store_that_cannot_be_reached_is_one_sentence() -> None:
    store = fs.S3FileSystem(
        access_key="a", secret_key="b", endpoint_override="127.0.0.1:9", scheme="http",
        connect_timeout=1, retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )  # fmt: skip
    with pytest.raises(OSError, match="AWS Error") as unreachable:
        store.get_file_info("lake/tables")

    sentence = sentence_of(unreachable.value)
    assert sentence is not None
    assert sentence.startswith("the store cannot be used: ")
    assert "RIVERMARK_LAKE_ROOT" in sentence


def test_r19_another_working_folder_is_said(rivermark: Run, shop: Topology, tmp_path: Path) -> None:
    result = rivermark("status", "--home", str(tmp_path / "elsewhere"))

    assert "there is no lake there yet: nothing has run with this home" in result.stderr


def test_r19_a_group_is_resumed_and_not_a_stream(rivermark: Run, shop: Topology) -> None:
    stream = shop.streams[0]

    result = rivermark("resume", stream.name)

    assert f"'{stream.name}' is a stream, but only whole groups are paused" in result.stderr
    assert f"its group is '{stream.group}'" in result.stderr


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
    assert "run `rivermark setup`" in result.stderr
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
