import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
LOCKED = dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==([^ \\;]+)", LOCK, re.MULTILINE))


def declared() -> list[str]:
    extras = PROJECT["optional-dependencies"].values()
    return [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]


def test_every_declared_package_is_pinned_and_locked_in_that_version() -> None:
    pins = dict(line.split("==") for line in declared())

    assert pins == {name: LOCKED.get(name) for name in pins}


def test_every_locked_package_has_a_hash() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())

    assert len(entries) == len(LOCKED)
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_names_no_host() -> None:
    assert re.findall(r"https?://\S+|--(?:extra-)?index-url|--find-links", LOCK) == []


def test_the_delta_jars_fit_the_delta_package() -> None:
    jars = (ROOT / "rivermark" / "setup" / "locks" / "delta.lock").read_text()
    spark_line = ".".join(LOCKED["pyspark"].split(".")[:2])

    assert f"io.delta:delta-spark_{spark_line}_2.13:{LOCKED['delta-spark']}\n" in jars
