"""The library as a wheel, without the project around it: `python -m setup.wheel FOLDER`.

Of a copy in which nothing but `rivermark/` lies: no build can take in what is not there.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import build_meta

from setup.local_server import ROOT


def build(folder: Path) -> Path:
    """Build the wheel into the folder; returns its path. Needs no network."""
    folder.mkdir(parents=True, exist_ok=True)
    folder, before = folder.resolve(), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="wheel-") as scratch:
        source = Path(scratch)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "rivermark", source / "rivermark", ignore=ignored)
        shutil.copy(ROOT / "setup" / "wheel.toml", source / "pyproject.toml")
        for file in ("README.md", "LICENSE"):
            shutil.copy(ROOT / file, source)
        try:
            os.chdir(source)
            name: str = build_meta.build_wheel(str(folder))
        finally:
            os.chdir(before)
    return folder / name


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")))
