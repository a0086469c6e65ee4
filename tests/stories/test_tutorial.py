"""The tutorial is followed to the letter in a copy of the checkout: files, commands, answers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.stories.deployment import ROOT, Deployment, free_port

PAGE = ROOT / "docs" / "tutorial.md"
CHECKOUT = (
    *("assets", "instance", "jobs", "platform_defs", "resources", "rivermark", "setup"),
    *("simulator", "tests", "Makefile", "pyproject.toml", "workspace.yaml"),
)
BLOCK = re.compile(r"```(\w+)\n(.*?)```|`([\w/]+\.py)`", re.DOTALL)
PATIENCE = 300


class Reader:
    """Does what the page says; `said` is the output of the newest command."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.files: set[str] = set()
        self.port = free_port()
        self.ui: Deployment | None = None
        self.command, self.said = "", ""
        self.commands = 0
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RIVERMARK_", "DAGSTER_"))
        } | {"PYTHONPATH": str(checkout), "PATH": f"{checkout}/.venv/bin:{os.environ['PATH']}"}

    def save(self, path: str, text: str) -> None:
        """Write a file of the page."""
        file = self.checkout / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.files.add(path)

    def change(self, path: str, difference: str) -> None:
        """Replace the lines that are there, in a file, as a block of differences shows it."""
        lines = difference.splitlines(keepends=True)
        before, after = (
            "".join(line[1:] for line in lines if line[0] in signs) for signs in (" -", " +")
        )
        file = self.checkout / path
        assert file.read_text().count(before) == 1, (path, before)
        file.write_text(file.read_text().replace(before, after))

    def do(self, command: str) -> None:
        """Run a command; `make ui` goes on beside the others, and a pause is waited for."""
        self.command = command
        self.commands += len(command.strip().splitlines())
        if command.startswith("make ui"):
            self.ui = self.start_ui()
            return
        ran = subprocess.run(
            ["bash", "-ec", command],
            cwd=self.checkout,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ran.stdout
        assert ran.returncode == 0, f"{command}\n{ran.stdout}"
        if "rivermark pause" in command:
            beats = HeartbeatStore(self.settings().state)
            wait_until(
                lambda: all(beat.state == "stopped" for beat in beats.latest().values()),
                PATIENCE,
                reason="the streams stop",
            )

    def expect(self, text: str) -> None:
        """What a command says, blanks aside; what a live stream has yet to write is waited for."""
        lines = [" ".join(line.split()) for line in text.splitlines()]

        def is_said() -> bool:
            return all(line in " ".join(self.said.split()) for line in lines)

        def again() -> bool:
            self.do(self.command)
            return is_said()

        if not is_said() and self.command.startswith("rivermark show"):
            wait_until(again, PATIENCE, reason=f"{self.command} shows {text}", interval=1)
        assert is_said(), f"{self.command}\n{self.said}\nand not\n{text}"

    def settings(self) -> Settings:
        """The settings of the copy."""
        return Settings(home=self.checkout / ".rivermark")

    def start_ui(self) -> Deployment:
        """The page, without its set-up: the environment is that of this checkout."""
        with (self.checkout / "ui.log").open("w") as log:
            ui = subprocess.Popen(
                ["make", "-o", "setup", "ui", f"UI_PORT={self.port}"],
                cwd=self.checkout,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        return Deployment(self.checkout, self.settings(), ui, self.port)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    for name in CHECKOUT:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy2(ROOT / name, tmp_path)
    (tmp_path / ".venv").symlink_to(Path(sys.prefix))
    (tmp_path / ".cache").symlink_to(ROOT / ".cache")
    person = Reader(tmp_path)
    yield person
    if person.ui is not None:
        person.ui.stop()


@pytest.mark.story
@pytest.mark.slow
def test_the_tutorial_works_as_it_is_written(reader: Reader) -> None:
    path, began = "", time.monotonic()
    for found in BLOCK.finditer(PAGE.read_text()):
        language, text, mentioned = found.groups()
        match language:
            case None:
                path = mentioned
            case "python":
                reader.save(path, text)
            case "diff":
                reader.change(path, text)
            case "bash":
                reader.do(text)
            case "text":
                reader.expect(text)
    written = sorted(reader.files)
    seconds = time.monotonic() - began
    print(  # noqa: T201 - how long the machine takes of the 20 minutes
        f"{len(written)} files, {reader.commands} commands in {seconds:.0f} s"
    )

    assert len(written) == 8
    for tool in ("ruff check", "ruff format --check", "mypy"):
        reader.do(f"{tool} {' '.join(written)} assets/topology.py")
