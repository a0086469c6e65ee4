"""An environment of its own with the wheel in it, as somebody has who never saw this repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rivermark.setup.jars import CACHE
from setup.wheel import build


class FreshEnvironment:
    """The wheel in an environment below `folder`; commands run in `work`, which a project fills."""

    def __init__(self, folder: Path, work: str = "work") -> None:
        self.work, self.bin = folder / work, folder / "env" / "bin"
        self.dagster_home: Path | None = None
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        wheel = build(folder / "dist")
        offline = ("--no-index", "--no-deps", "--quiet")
        subprocess.run([self.bin / "python", "-m", "pip", "install", *offline, wheel], check=True)
        (site,) = (folder / "env" / "lib").glob("*/site-packages")
        # The packages that it needs, without what their folder has of this project.
        others = [path for path in sys.path if path.endswith("site-packages")]
        (site / "others.pth").write_text("\n".join(others))
        self.home = self.work / ".rivermark"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands: none of this repository's, and the JARs that it has."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RIVERMARK_", "PYTHON", "DAGSTER"))
        }
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        own = {"RIVERMARK_CACHE": str(CACHE), "RIVERMARK_HOME": str(self.home), "PATH": path}
        dagster = {"DAGSTER_HOME": str(self.dagster_home)} if self.dagster_home else {}
        return kept | own | dagster

    def run(self, *command: str, folder: Path | None = None, code: int = 0) -> str:
        """The output of a command that ends with that exit code."""
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=folder or self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout
