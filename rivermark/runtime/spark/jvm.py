"""Options of the driver's JVM: JARs, class archive, compiler, collector, heap.

Nothing here starts Spark or needs it: `rivermark setup` fills the cache folder and these functions
find what it left. The settings only count when the JVM is born, so they belong into the builder
of the first session of a process.
"""

import os
import re
from pathlib import Path
from typing import Final, Literal

from rivermark.model.errors import RivermarkError
from rivermark.setup.jars import cache_folder

Kind = Literal["short", "long", "large", "batch"]
"""A run of minutes; streams that live for days; a bounded run with much to read; a recompute of
much, which has no stream."""

_HEAP_SIZE: Final = re.compile(r"[1-9]\d*[mg]")

_FOR_ALL: Final = (
    # A JVM reads its default time zone when it starts; event time is UTC everywhere.
    "-Duser.timezone=UTC",
    # Nobody attaches jps or jstat here, and the counters are a file that each driver writes.
    "-XX:-UsePerfData",
)
_MANY_RUNS: Final = (
    # A stream runs the same code for days: all compilers, and no collector that works beside it.
    # A batch runs much code a little, so the slow compiler would never be done with it: it takes
    # what runs ten times as often as by default (docs/decisions/0007-what-a-start-costs.md).
    "-XX:+UseParallelGC",
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
_FOR_KIND: Final[dict[Kind, tuple[str, ...]]] = {
    # Most of a short run is code that runs once: the quick compiler and one collector thread.
    # It alone gets 48 MB for its code by default, which thirty queries fill: then nothing is
    # compiled any more and queries die of "Out of space in CodeCache". All compilers get 240 MB.
    "short": (
        "-XX:TieredStopAtLevel=1",
        "-XX:ReservedCodeCacheSize=240m",
        "-XX:+UseSerialGC",
    ),
    "long": _MANY_RUNS,
    "large": _MANY_RUNS,
    "batch": _MANY_RUNS,
}


class JarsMissing(RivermarkError):
    """A set of JARs is not in the cache folder."""


def driver_options(
    kind: Kind, *, heap: str = "2g", connectors: tuple[str, ...] = ()
) -> dict[str, str]:
    """Spark settings for the driver of such a run.

    `heap` is the largest heap, such as `2g` or `512m`. `connectors` names further sets of JARs
    that `rivermark setup` fetched. Raises `JarsMissing`.
    """
    if not _HEAP_SIZE.fullmatch(heap):
        raise ValueError(f"a heap is a number with m or g, such as 2g, not {heap!r}")
    delta = jar_set("delta")
    flags = [*_FOR_ALL, *_FOR_KIND[kind]]
    if kind in ("large", "batch"):
        # It will need most of its heap. Growing there step by step, each with a collection of all
        # of it, took a fifth of a run's CPU (docs/decisions/0007-what-a-start-costs.md).
        flags.append(f"-Xms{_megabytes(heap) * 3 // 4}m")
    if archive := class_archive():
        # A JVM that it does not fit passes it over, in silence: it starts slower, that is all.
        flags += [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
        flags += ["-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return {
        "spark.driver.memory": heap,
        # Executors elsewhere get the JARs from here.
        "spark.jars": ",".join(
            str(jar) for name in ("delta", *connectors) for jar in jar_set(name)
        ),
        # The archive holds only classes of the class path itself, and only for this very path.
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in delta),
        "spark.driver.extraJavaOptions": " ".join(flags),
    }


def _megabytes(heap: str) -> int:
    return int(heap[:-1]) * (1024 if heap.endswith("g") else 1)


def jar_set(name: str) -> tuple[Path, ...]:
    """The JARs of a set, sorted, because a class archive fits one order only."""
    folder = cache_folder() / "jars" / name
    jars = tuple(sorted(folder.glob("*.jar")))
    if not jars:
        command = "rivermark setup" if name == "delta" else f"rivermark setup {name}"
        raise JarsMissing(
            f"no JARs of set {name!r} in {folder}: run `{command}`, "
            "or let RIVERMARK_CACHE name the folder that holds jars/"
        )
    return jars


def class_archive() -> Path | None:
    """The class-data archive of the driver, if `rivermark setup` could build one and it is whole.

    Its size is compared with the one noted when it was built: the JVM looks at the head only, and
    an archive that was cut short, by a copy of the cache for instance, kills it with SIGBUS.
    """
    archive = cache_folder() / "cds" / "spark.jsa"
    try:
        noted = int(archive.with_name("spark.size").read_text())
        return archive if archive.stat().st_size == noted else None
    except (OSError, ValueError):
        return None
