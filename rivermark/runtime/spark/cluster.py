"""Spark's own cluster: how its executors are started, and its workers compared with the driver."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from importlib.metadata import version
from typing import Final

from pyspark.sql import SparkSession

from rivermark.model.errors import RivermarkError
from rivermark.settings import Settings

COMPARED: Final = ("rivermark", "pyarrow", "duckdb")
"""Packages of which executors need the driver's version: what one writes the other reads."""
PATIENCE: Final = 90.0
"""Seconds in which some executor has to start and to take a task."""
GIVEN_UP: Final = re.compile(
    r"SparkContext (has been|was) shut ?down|removed our application", re.I
)
"""Said where no executor of the run could be started at all."""
LOOPBACK: Final = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):")

Versions = dict[str, str]


def executor_conf(settings: Settings) -> dict[str, str]:
    """Spark settings of executors elsewhere; cores, instances and the like by `spark_conf`."""
    conf = {
        "spark.executor.memory": settings.executor_memory,
        # The zone of a JVM that it runs in is that of days everywhere.
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        # A task whose state lies with another executor would load all of it from the checkpoint.
        "spark.locality.wait": "1s",
    }
    host = settings.driver_host or ("127.0.0.1" if LOOPBACK.match(settings.master) else "")
    if host:
        conf |= {"spark.driver.host": host, "spark.driver.bindAddress": host}
    return conf


def executor_python(settings: Settings) -> str:
    """The Python of the workers: by default the driver's path, which has to exist there too."""
    return settings.executor_python or sys.executable


def check_executors(spark: SparkSession, settings: Settings) -> None:
    """Compare what executors run with what this process runs, by a task of each core.

    Raises:
        RivermarkError: no executor starts or takes a task, its Python cannot be run or lacks a
            package, or has another version of one.
    """
    context = spark.sparkContext
    tasks = max(context.defaultParallelism, 2)
    packages = COMPARED

    # Inside a function: then it travels by its code, and needs none of our modules to be looked at.
    def versions_there(_: Iterable[int]) -> Iterator[Versions]:
        from importlib.metadata import PackageNotFoundError, version
        from platform import node, python_version

        seen = {"host": node(), "python": python_version()}
        for name in packages:
            try:
                seen[name] = version(name)
            except PackageNotFoundError:
                seen[name] = "none"  # It is not installed there.
        yield seen

    pool = ThreadPoolExecutor(max_workers=1)
    job = pool.submit(
        lambda: context.parallelize(range(tasks), tasks).mapPartitions(versions_there).collect()
    )
    try:
        seen = job.result(PATIENCE)
    except Late:
        context.cancelAllJobs()
        raise RivermarkError(
            f"no executor of {settings.master} took a task within {PATIENCE:.0f} s: it has no free "
            f"cores, no worker with {settings.executor_memory} of memory "
            "(RIVERMARK_EXECUTOR_MEMORY), or its executors cannot reach the driver at "
            f"{context.getConf().get('spark.driver.host')} (RIVERMARK_DRIVER_HOST)"
        ) from None
    except Exception as error:
        if GIVEN_UP.search(str(error)):
            raise RivermarkError(
                f"executors of {settings.master} end as they start, and its master has given this "
                "run up: the logs of its workers say why"
            ) from error
        raise RivermarkError(
            f"executors of {settings.master} cannot run Python ({_cause(error)}): give the path of "
            f"a Python there with the packages of this one (RIVERMARK_EXECUTOR_PYTHON, now "
            f"{executor_python(settings)})"
        ) from error
    finally:
        pool.shutdown(wait=False)
    own = {name: version(name) for name in packages}
    for versions in seen:
        for name, ours in own.items():
            if versions[name] != ours:
                raise RivermarkError(
                    f"executors of {settings.master} on {versions['host']} have {name} "
                    f"{versions[name]}, the driver has {ours}: install the same version there, or "
                    "name a Python that has it (RIVERMARK_EXECUTOR_PYTHON)"
                )


def _cause(error: Exception) -> str:
    """The last line of an error of Spark that says why Python did not start."""
    causes = re.findall(
        r"((?:ModuleNotFoundError|ImportError|PYTHON_VERSION_MISMATCH|Cannot run program|"
        r"java\.io\.IOException|\[PYTHON_VERSION)[^\n]*)",
        str(error),
    )
    # Of an error of Java the line of its class: the frames that follow say nothing.
    causes = causes or re.findall(r"^: (.+)", str(error), re.MULTILINE)[:1]
    return (causes or str(error).strip().splitlines() or ["unknown"])[-1].strip()[:300]


def is_cluster(settings: Settings) -> bool:
    """Returns True if executors are other processes than the driver."""
    return not settings.master.startswith("local") or settings.master.startswith("local-cluster")


def name_python(settings: Settings) -> None:
    """Have Spark start the executors' Python by its path: by itself it takes any `python3`."""
    os.environ["PYSPARK_PYTHON"] = executor_python(settings)
