"""The virtual environment that `make setup` makes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "setup" / "venv.sh"


def test_the_environment_of_another_folder_is_not_emptied_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "setup").mkdir()
    script = shutil.copy(SCRIPT, tmp_path / "setup")
    package = tmp_path / "other" / "lib" / "package.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    (tmp_path / ".venv").symlink_to(tmp_path / "other")

    ended = subprocess.run([script], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert "is a link to the environment of another folder: remove the link" in ended.stderr
    assert package.exists()
