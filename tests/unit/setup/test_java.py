"""setup/java.sh against stand-ins for `java` that only print a version."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "setup" / "java.sh"


def check(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    variables |= {"PATH": f"{path}:/usr/bin:/bin"} | environment
    return subprocess.run([SCRIPT], env=variables, capture_output=True, text=True, check=False)


def install_java(folder: Path, version_line: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{version_line}\nEND\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "21" 2023-09-19',
        'Picked up JAVA_TOOL_OPTIONS: -Dx=y\nopenjdk version "17.0.1" 2021-10-19',
        'java version "25-ea" 2025-09-16',
    ],
)
def test_java_17_and_later_pass_in_silence(tmp_path: Path, line: str) -> None:
    done = check(install_java(tmp_path, line))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "11.0.2"),
        ('java version "1.8.0_392"', "1.8.0_392"),
    ],
)
def test_an_old_java_is_refused_in_one_sentence_that_says_how_to_mend_it(
    tmp_path: Path, line: str, version: str
) -> None:
    done = check(install_java(tmp_path, line))

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert f"needs Java 17 or later and found {version} on the PATH" in done.stderr
    assert "install" in done.stderr


def test_the_stand_in_of_a_system_without_java_counts_as_none(tmp_path: Path) -> None:
    done = check(install_java(tmp_path, "Unable to locate a Java Runtime."))

    assert done.returncode == 1
    assert "found none on the PATH" in done.stderr


def test_java_home_wins_over_the_path_as_it_does_for_spark(tmp_path: Path) -> None:
    good = install_java(tmp_path / "good", 'openjdk version "17.0.15" 2025-04-15')
    install_java(tmp_path / "old" / "bin", 'openjdk version "11.0.2" 2019-01-15')

    done = check(good, JAVA_HOME=str(tmp_path / "old"))

    assert done.returncode == 1
    assert f"found 11.0.2 in JAVA_HOME ({tmp_path / 'old'})" in done.stderr
