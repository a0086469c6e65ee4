"""What the peers need beyond the project's environment: Flink's packages and its JARs.

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

from setup.ivy import spark_jars
from setup.jars import CACHE, fetch

FOLDER: Final = CACHE / "bench"
FLINK: Final = FOLDER / "flink"
FLINK_PYTHON: Final = FLINK / "bin" / "python"
PACKAGES: Final = Path(__file__).with_name("flink.txt")
NOTE: Final = FLINK / "installed.txt"


def set_up() -> None:
    """Make Flink's environment and fetch its JARs, where they are not there."""
    fetch("delta")
    fetch("flink")
    if flink_ready():
        return
    shutil.rmtree(FLINK, ignore_errors=True)
    FLINK.parent.mkdir(parents=True, exist_ok=True)
    print("Installing PyFlink into an environment of its own (once; some minutes)", flush=True)
    if shutil.which("uv"):
        run("uv", "venv", "--quiet", "--python", sys.executable, str(FLINK))
        run("uv", "pip", "install", "--quiet", "--python", str(FLINK_PYTHON), "-r", str(PACKAGES))
    else:
        base = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
        run(str(base), "-m", "venv", str(FLINK))
        run(str(FLINK_PYTHON), "-m", "pip", "install", "--quiet", "-r", str(PACKAGES))
    # Last, so that an install that broke off is done again.
    shutil.copy(PACKAGES, NOTE)


def run(*command: str) -> None:
    """Run a step; its own words say what went wrong."""
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"bench peers --setup: `{' '.join(command)}` failed")


def flink_ready() -> bool:
    """Whether Flink's environment is the one that is asked for."""
    return NOTE.exists() and NOTE.read_text() == PACKAGES.read_text()


def jars(name: str) -> list[str]:
    """The JARs of a set."""
    return sorted(str(jar) for jar in (CACHE / "jars" / name).glob("*.jar"))


def variables() -> dict[str, str]:
    """Where the peers' jobs find their JARs."""
    # Flink's Parquet format needs Hadoop's client, and Spark ships one.
    hadoop = sorted(str(jar) for jar in spark_jars().glob("hadoop-client-*.jar"))
    return {
        "BENCH_SPARK_JARS": ",".join(jars("delta")),
        "BENCH_FLINK_JARS": os.pathsep.join([*jars("flink"), *hadoop]),
    }
