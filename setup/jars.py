"""The JARs that Spark needs beyond its own: `python -m setup.jars SET...`.

A set is what setup/locks/SET.lock lists: one line a JAR, its SHA-256 and its Maven coordinates. It
is fetched once into .cache/jars/SET and checked against the lock each time; while it is whole, no
network is needed. `setup.jar_lock` writes the locks.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from setup.ivy import ROOT, Module, Problem, retrieve

LOCKS = ROOT / "setup" / "locks"
CACHE = Path(os.environ.get("RIVERMARK_CACHE") or ROOT / ".cache").resolve()


def fetch(name: str) -> None:
    """Make `.cache/jars/NAME` the locked set; leave nothing behind when that fails."""
    lock = read_lock(name)
    folder = CACHE / "jars" / name
    if not differences(folder, lock):
        return
    print(f"Fetching {len(lock)} JARs of set {name} (once)", flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"jars-{name}-", dir=CACHE) as scratch:
        # Not transitive: the lock has them all, and Ivy would fetch Spark's own as well.
        fetched = retrieve(lock, Path(scratch), transitive=False)
        if wrong := differences(fetched, lock):
            raise Problem(
                f"what was fetched is not set {name}: {'; '.join(wrong)}. Nothing was kept. Run "
                f"the same again; if that does not help, compare setup/locks/{name}.lock with "
                "the publisher's checksums before you write it again with setup.jar_lock."
            )
        shutil.rmtree(folder, ignore_errors=True)
        try:
            # The set appears under its name only here, whole.
            fetched.rename(folder)
        except OSError as error:
            # Another set-up at the same time may have been quicker; its result is as good.
            if differences(folder, lock):
                raise Problem(f"{folder} cannot be written: {error}") from error


def read_lock(name: str) -> dict[Module, str]:
    """The modules of a set and the SHA-256 of each one's JAR."""
    lock = LOCKS / f"{name}.lock"
    if not lock.is_file():
        known = ", ".join(sorted(path.stem for path in LOCKS.glob("*.lock")))
        raise Problem(f"there is no set of JARs named {name!r}; known are: {known}")
    lines = [line.split() for line in lock.read_text().splitlines() if not line.startswith("#")]
    return {Module.parse(coordinates): digest for digest, coordinates in lines}


def differences(folder: Path, lock: dict[Module, str]) -> list[str]:
    """What keeps the folder from being the locked set; empty when it is exactly that."""
    wanted = {module.file: digest for module, digest in lock.items()}
    present = {path.name: sha256(path) for path in folder.glob("*.jar")}
    return (
        [f"{file} is missing" for file in sorted(wanted.keys() - present.keys())]
        + [f"{file} is not in the lock" for file in sorted(present.keys() - wanted.keys())]
        + [
            f"{file} has SHA-256 {present[file]}, the lock says {wanted[file]}"
            for file in sorted(wanted.keys() & present.keys())
            if present[file] != wanted[file]
        ]
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="SET")
    try:
        for name in parser.parse_args().names:
            fetch(name)
    except Problem as problem:
        sys.exit(f"rivermark setup: {problem}")


if __name__ == "__main__":
    main()
