"""What the peers need beyond the project's environment: Flink's and Pathway's packages, and JARs.

DuckDB, Polars and Spark are in the project's lock. `python -m bench peers --setup` makes the rest,
once, below the cache folder (.cache/bench, .cache/jars/flink).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from rivermark.setup.ivy import spark_jars
from rivermark.setup.jars import CACHE, fetch

FOLDER: Final = CACHE / "bench"
OWN: Final = ("flink", "pathway")
"""Peers with an environment of their own: they ask for other packages than the platform."""


def set_up() -> None:
    """Make the peers' environments and fetch Flink's JARs, where they are not there."""
    fetch("delta")
    fetch("flink")
    fetch("flink-kafka")
    for peer in OWN:
        if not ready(peer):
            install(peer)


def install(peer: str) -> None:
    """Install a peer's packages into an environment of its own."""
    folder = FOLDER / peer
    python = str(python_of(peer))
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    print(f"Installing {peer} into an environment of its own (once; some minutes)", flush=True)
    if shutil.which("uv"):
        run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
        run("uv", "pip", "install", "--quiet", "--python", python, "-r", str(packages(peer)))
    else:
        base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        run(str(base), "-m", "venv", str(folder))
        run(python, "-m", "pip", "install", "--quiet", "-r", str(packages(peer)))
    # Last, so that an install that broke off is done again.
    shutil.copy(packages(peer), note(peer))


def run(*command: str) -> None:
    """Run a step; its own words say what went wrong."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"bench peers --setup: `{' '.join(command)}` failed")


def ready(peer: str) -> bool:
    """Whether a peer's environment is the one that is asked for."""
    return note(peer).exists() and note(peer).read_text() == packages(peer).read_text()


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment."""
    return FOLDER / peer / "bin" / "python"


def packages(peer: str) -> Path:
    """The list of a peer's packages."""
    return Path(__file__).with_name(f"{peer}.txt")


def note(peer: str) -> Path:
    """The list that was installed."""
    return FOLDER / peer / "installed.txt"


def jars(name: str) -> list[str]:
    """The JARs of a set."""
    return sorted(str(jar) for jar in (CACHE / "jars" / name).glob("*.jar"))


def variables(*sets: str) -> dict[str, str]:
    """Where the peers' jobs find their JARs: Flink's are those of the sets (default: `flink`)."""
    # Flink's Parquet format needs Hadoop's client, and Spark ships one.
    hadoop = sorted(str(jar) for jar in spark_jars().glob("hadoop-client-*.jar"))
    flink = [jar for name in sets or ("flink",) for jar in jars(name)]
    return {
        "BENCH_SPARK_JARS": ",".join(jars("delta")),
        "BENCH_FLINK_JARS": os.pathsep.join([*flink, *hadoop]),
    }
