"""Write the lock of a set of JARs: `python -m setup.jar_lock SET ORG:NAME:VERSION...`.

The libraries named are resolved with all that they need; what Spark ships itself is left out,
since Spark's own versions would win on the class path anyway.
"""

import argparse
import fnmatch
import re
import sys
import tempfile
from pathlib import Path

from rivermark.setup.ivy import Module, Problem, retrieve, spark_jars
from rivermark.setup.jars import CACHE, LOCKS, sha256


def write_lock(name: str, roots: list[Module], without: list[str], *, with_spark: bool) -> None:
    """Resolve, leave out what is not wanted, and write one line a JAR."""
    shipped = set() if with_spark else {_artifact(jar.name) for jar in spark_jars().glob("*.jar")}
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"lock-{name}-", dir=CACHE) as scratch:
        fetched = retrieve(
            roots,
            Path(scratch),
            transitive=True,
            pattern="[organisation]!![module]!![revision].[ext]",
        )
        digests = {
            Module(*jar.stem.split("!!")): sha256(jar) for jar in sorted(fetched.glob("*.jar"))
        }
    kept = {
        module: digest
        for module, digest in digests.items()
        if module.name not in shipped
        and not any(fnmatch.fnmatch(module.name, pattern) for pattern in without)
    }
    command = ["python -m setup.jar_lock", name, *(":".join(root) for root in roots)]
    command += ["--without", *(f"'{pattern}'" for pattern in without)] if without else []
    command += ["--with-spark"] if with_spark else []
    lines = [f"# Written by: {' '.join(command)}"]
    lines += [f"{digest}  {':'.join(module)}" for module, digest in sorted(kept.items())]
    LOCKS.mkdir(exist_ok=True)
    (LOCKS / f"{name}.lock").write_text("\n".join(lines) + "\n")


def _artifact(jar: str) -> str:
    """The artifact in a JAR's file name: `delta-storage` in `delta-storage-4.4.0.jar`."""
    return re.sub(r"-\d[\w.]*(-\w+)?\.jar$", "", jar)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", metavar="SET")
    parser.add_argument("roots", nargs="+", metavar="ORG:NAME:VERSION")
    parser.add_argument("--without", nargs="+", default=[], metavar="PATTERN")
    parser.add_argument("--with-spark", action="store_true", help="keep what Spark ships as well")
    options = parser.parse_args()
    try:
        roots = [Module.parse(root) for root in options.roots]
        write_lock(options.name, roots, options.without, with_spark=options.with_spark)
    except Problem as problem:
        sys.exit(f"rivermark setup: {problem}")


if __name__ == "__main__":
    main()
