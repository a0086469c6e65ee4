"""What a measurement writes down: its figures, and what machine, versions and commit they are of.

Each module of `bench` that is named in `python -m bench --help` takes `--out FILE` and writes one
JSON object there: `{"measure": NAME, "figures": {NAME: NUMBER or TEXT or LIST}, "machine": {...}}`.
`python -m bench all` runs the modules and puts their figures beside the aims.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

from rivermark.setup import ivy

ROOT: Final = Path(__file__).resolve().parent.parent
DETAILS: Final = ROOT / "docs" / "performance"
"""Where figures and the pages behind the first one lie."""
PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "dagster", "duckdb", "polars", "pyarrow")


def machine() -> dict[str, Any]:
    """Cores, memory, versions, commit, load and time (UTC) of this moment."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30),
        "processor": processor(),
        "load": load(),
        "python": platform.python_version(),
        "java": java(),
        "versions": {name: number for name in PACKAGES if (number := package(name))},
    }


def commit() -> str:
    """The commit that is measured, with a plus sign where files were changed since.

    Not those of `docs`, where one measurement after the other is written down.
    """
    git = ("git", "-C", str(ROOT))
    changed = _first_line(*git, "status", "--porcelain", "--", ".", ":!docs")
    described = _first_line(*git, "describe", "--always")
    return f"{described}{'+' if changed else ''}" if described else "unknown"


def java() -> str:
    """The first line of `java -version`."""
    return _first_line(ivy.java(), "-version")


def processor() -> str:
    """The processor's name, where the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def package(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def options_of(doc: str | None) -> argparse.ArgumentParser:
    """A measurement's command line: its module's docstring, and where its figures go."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="also write figures and machine as JSON there")
    return parser


def load() -> float:
    """The load of the last minute."""
    return round(os.getloadavg()[0], 2)


def report(measure: str, figures: Mapping[str, Any], out: Path | None) -> None:
    """Print a measurement's figures, and write its file where one is asked for."""
    for name, value in figures.items():
        print(f"{name:40} {json.dumps(value)}", flush=True)
    if out:
        write_figures(out, measure, figures)


def write_figures(out: Path, measure: str, figures: Mapping[str, Any]) -> None:
    """Write a measurement's file."""
    content = {"measure": measure, "figures": dict(figures), "machine": machine()}
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=2) + "\n")


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines and not done.returncode else ""
