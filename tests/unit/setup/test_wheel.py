"""The wheel of the library: what is in it, and what it asks of the project that takes it."""

from __future__ import annotations

import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from setup.wheel import build

ROOT = Path(__file__).parents[3]


def project(file: str) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((ROOT / file).read_text())["project"]
    return read


def required(lines: list[str]) -> dict[str, Requirement]:
    return {canonicalize_name(r.name): r for r in map(Requirement, lines)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build(tmp_path_factory.mktemp("dist")))


def test_the_wheel_holds_the_library_and_nothing_of_the_example(wheel: zipfile.ZipFile) -> None:
    packed = [name for name in wheel.namelist() if ".dist-info/" not in name]
    here = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "rivermark").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert set(packed) == here
    (entries,) = (n for n in wheel.namelist() if n.endswith("entry_points.txt"))
    assert wheel.read(entries).decode().split() == [
        "[console_scripts]",
        *("rivermark", "=", "rivermark.cli.main:app"),
        "[dagster_dg_cli.registry_modules]",
        *("rivermark", "=", "rivermark.dagster.component"),
    ]


def test_its_ranges_hold_the_versions_that_this_repository_is_tested_with() -> None:
    library, tested = project("setup/wheel.toml"), project("pyproject.toml")
    ranges, pins = (required(each["dependencies"]) for each in (library, tested))
    extras = {**tested["optional-dependencies"]}
    for extra, lines in library["optional-dependencies"].items():
        ranges |= required(lines)
        pins |= {
            n: p for n, p in required(extras.get(extra, extras["bench"])).items() if n in ranges
        }

    # The command line of `dg` is for those who develop here.
    assert ranges.keys() == pins.keys() - {"dagster-dg-cli"}
    for name, asked in ranges.items():
        (pin,) = pins[name].specifier
        assert asked.specifier.contains(pin.version), name
    for same in ("version", "requires-python", "license"):
        assert library[same] == tested[same]
