"""`rivermark new my_platform`: what it writes is linted and typed, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from rivermark.cli.main import app
from rivermark.model.errors import WrongUse
from rivermark.scaffold.project import write_project

CARD = (
    *("workspace.yaml", "platform_defs/definitions.py", "assets/topology.py", "pyproject.toml"),
    *("resources/__init__.py", "jobs/__init__.py", "tests/test_streams.py", "Makefile"),
    *(".github/workflows/test.yml", ".env.example", ".gitignore", "README.md", "dagster.yaml"),
)
ROOT = Path(__file__).parents[3]


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_project_has_the_usual_shape_in_short_files(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new", str(tmp_path / "my_cafe"), "--json"])
    files = {file: tmp_path / "my_cafe" / file for file in CARD}

    assert result.exit_code == 0, result.output
    assert all(file.is_file() for file in files.values())
    for file in (tmp_path / "my_cafe").rglob("*"):
        text = file.read_text() if file.is_file() else ""
        assert len(text.splitlines()) <= 80, file
        assert not any(left in text for left in ("my_platform", "[if ", "[end]", "RIVERMARK_VER"))
    assert "my_cafe" in files["workspace.yaml"].read_text()
    assert "KafkaSource" not in (tmp_path / "my_cafe/assets/cafe/orders.py").read_text()
    assert "ui:" not in files["Makefile"].read_text()


def test_its_word_may_be_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["new", "project", str(tmp_path / "said")])

    assert result.exit_code == 0, result.output
    assert "make demo" in result.output


@pytest.mark.parametrize("options", [(), ("kafka", "ui")])
def test_what_is_written_passes_its_own_linters(tmp_path: Path, options: tuple[str, ...]) -> None:
    write_project(tmp_path / "my_cafe", options)

    run(tmp_path / "my_cafe", "ruff", "check", ".")
    run(tmp_path / "my_cafe", "ruff", "format", "--check", ".")


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("kafka", "ui")])
def test_what_is_written_passes_its_type_checker(tmp_path: Path, options: tuple[str, ...]) -> None:
    write_project(tmp_path / "my_cafe", options)

    packages = ("assets", "jobs", "platform_defs", "resources", "tests")
    run(tmp_path / "my_cafe", "mypy", *packages)


def test_its_tests_without_spark_pass(tmp_path: Path) -> None:
    write_project(tmp_path / "my_cafe")

    run(tmp_path / "my_cafe", "pytest", "-q", "tests/test_free_drinks.py")


def test_options_add_a_topic_and_a_page(tmp_path: Path) -> None:
    words = ["--source", "kafka", "--with-ui"]
    assert CliRunner().invoke(app, ["new", str(tmp_path / "both"), *words]).exit_code == 0

    orders = (tmp_path / "both/assets/cafe/orders.py").read_text()
    assert 'KafkaSource(brokers="$CAFE_KAFKA"' in orders
    assert "rivermark[kafka]" in (tmp_path / "both/pyproject.toml").read_text()
    assert "python -m rivermark.dagster.ui" in (tmp_path / "both/Makefile").read_text()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("my-platform", "write a Python identifier"),
        ("2nd", "write a Python identifier"),
        ("class", "write a Python identifier"),
        ("café", "write a Python identifier"),
        ("assets", "a package that it needs has that name"),
        ("rivermark", "a package that it needs has that name"),
    ],
)
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(WrongUse, match=told):
        write_project(tmp_path / name)

    assert not (tmp_path / name).exists()


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("kept")
    (tmp_path / "file").write_text("kept")

    for name in ("full", "file"):
        result = CliRunner().invoke(app, ["new", str(tmp_path / name)])

        assert result.exit_code == 2, result.output
        assert "is not an empty folder" in result.output
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert write_project(tmp_path / "empty")


def test_the_instance_has_what_streams_need() -> None:
    """Compared with this repository's own, whose other settings are those of `make ui`."""
    written = ROOT / "rivermark/scaffold/templates/project/dagster.yaml"
    theirs, ours = (
        yaml.safe_load(f.read_text()) for f in (written, ROOT / "instance/dagster.yaml")
    )

    assert theirs["concurrency"]["pools"] == ours["concurrency"]["pools"]
    monitoring = theirs["run_monitoring"]
    assert monitoring.items() <= ours["run_monitoring"].items()
    assert monitoring["enabled"]
