"""Doors beside `make ui`: `dg`, with the definitions that it scaffolds, and plain `dagster dev`."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rivermark.dagster.loading import WITHOUT_PAGE, say_without_page

pytestmark = pytest.mark.platform
ROOT = Path(__file__).parents[2]
ASSETS = """
from platform_defs.definitions import defs
print(*sorted(key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()))
"""


def test_an_asset_that_dg_scaffolds_is_one_of_the_platform(tmp_path: Path) -> None:
    """It was a NotADirectoryError, with a path below definitions.py."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "platform_defs", tmp_path / "platform_defs")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "RIVERMARK_HOME": "home"}

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )

    dg = Path(sys.executable).with_name("dg")
    scaffolded = run(dg, "scaffold", "defs", "dagster.asset", "of_my_own.py")
    listed = run(sys.executable, "-c", ASSETS)

    assert scaffolded.returncode == 0, scaffolded.stderr
    assert (tmp_path / "platform_defs" / "defs" / "of_my_own.py").is_file()
    assert listed.returncode == 0, listed.stderr
    assert {"of_my_own", "taxi/hourly_winners"} <= set(listed.stdout.split())


@pytest.mark.parametrize(
    ("dev", "words", "said"),
    [
        (True, ["api", "grpc"], [WITHOUT_PAGE]),
        (True, ["list", "defs"], []),
        (False, ["api", "grpc"], []),
    ],
)
def test_a_page_of_dagster_dev_says_in_a_sentence_what_it_lacks(
    dev: bool,
    words: list[str],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sys, "argv", ["dagster", *words])
    monkeypatch.delenv("DAGSTER_IS_DEV_CLI", raising=False)
    if dev:
        monkeypatch.setenv("DAGSTER_IS_DEV_CLI", "1")

    with caplog.at_level(logging.WARNING):
        say_without_page()

    assert caplog.messages == said
