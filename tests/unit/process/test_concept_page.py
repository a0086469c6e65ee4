"""The page on process functions teaches with examples that run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import rivermark
from rivermark import process, testing
from rivermark.process import patterns, spark, windows
from rivermark.process.engine import stored_state as stored

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "process-functions.md"


def examples() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_examples_run_as_they_stand_one_after_the_other(tmp_path: Path) -> None:
    assert len(examples()) == 3
    story = tmp_path / "examples.py"
    story.write_text("\n".join(examples()))
    ran = subprocess.run(
        [sys.executable, str(story)],
        capture_output=True,
        text=True,
        cwd=PAGE.parents[2],
        env={"PYTHONPATH": str(PAGE.parents[2])},
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


def test_without_holding_the_second_example_depends_on_the_cut(tmp_path: Path) -> None:
    story = tmp_path / "unheld.py"
    story.write_text("\n".join(examples()[:2]).replace("hold = True", "hold = False"))
    ran = subprocess.run(
        [sys.executable, str(story)],
        capture_output=True,
        text=True,
        cwd=PAGE.parents[2],
        env={"PYTHONPATH": str(PAGE.parents[2])},
        check=False,
    )

    assert "SplitDifference" in ran.stderr


def test_the_names_of_the_table_exist() -> None:
    table = PAGE.read_text().split("## Flink API → here")[1]
    here = " ".join(line.split("|")[2] for line in table.splitlines() if line.startswith("| "))
    code = " ".join(re.findall(r"`([^`]*)`", here))
    names = set(re.findall(r"\b[A-Z][A-Za-z]{3,}(?:_[A-Z]+)*\b", code))
    known = {
        name
        for module in (process, testing, windows, patterns, stored, spark, rivermark)
        for name in (*dir(module), *getattr(module, "__all__", ()))
    }

    assert len(names) >= 15
    assert names - known <= {"FIRE_AND_PURGE"}
