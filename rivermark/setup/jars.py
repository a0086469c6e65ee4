"""The JARs that Spark needs beyond its own: `python -m rivermark.setup.jars SET...`.

A set is what locks/SET.lock lists: one line a JAR, its SHA-256 and its Maven coordinates. It is
fetched once into the cache, as jars/SET, and checked against the lock each time; while it is whole,
no network is needed. `setup.jar_lock` writes the locks.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from rivermark.setup.ivy import Module, Problem, retrieve

LOCKS = Path(__file__).with_name("locks")


def cache_folder() -> Path:
    """The folder RIVERMARK_CACHE, else `.cache` of a checkout of this code, else the user's."""
    if named := os.environ.get("RIVERMARK_CACHE"):
        return Path(named).resolve()
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file():
        return checkout / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rivermark"


CACHE = cache_folder()


def fetch(name: str, source: Path | None = None) -> None:
    """Make `jars/NAME` of the cache the locked set, from Maven or from the JARs of a folder.

    Leaves nothing behind when that fails.
    """
    lock = read_lock(name)
    folder = CACHE / "jars" / name
    if not differences(folder, lock):
        return
    print(f"Fetching {len(lock)} JARs of set {name} (once)", file=sys.stderr, flush=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"jars-{name}-", dir=CACHE) as scratch:
        # Not transitive: the lock has them all, and Ivy would fetch Spark's own as well.
        fetched = (
            retrieve(lock, Path(scratch), transitive=False)
            if source is None
            else _copied(lock, source, Path(scratch, "jars"))
        )
        if wrong := differences(fetched, lock):
            raise Problem(
                f"what was fetched is not set {name}: {'; '.join(wrong)}. Nothing was kept. Run "
                f"the same again; if that does not help, compare {LOCKS / name}.lock with "
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


def _copied(lock: dict[Module, str], source: Path, folder: Path) -> Path:
    folder.mkdir()
    for module in lock:
        if (source / module.file).is_file():
            shutil.copy2(source / module.file, folder)
    return folder


def read_lock(name: str) -> dict[Module, str]:
    """The modules of a set and the SHA-256 of each one's JAR."""
    lock = LOCKS / f"{name}.lock"
    if not lock.is_file():
        known = ", ".join(sorted(path.stem for path in LOCKS.glob("*.lock")))
        raise Problem(f"there is no set of JARs named {name!r}; choose one of {known}")
    lines = [line.split() for line in lock.read_text().splitlines() if not line.startswith("#")]
    return {Module.parse(coordinates): digest for digest, coordinates in lines}


def differences(folder: Path, lock: dict[Module, str]) -> list[str]:
    """Differences of the folder from the locked set; none when it is exactly that."""
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
