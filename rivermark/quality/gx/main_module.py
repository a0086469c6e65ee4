"""A main module with a file, for libraries that take a process without one for something else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def main_module_with_a_file() -> Iterator[None]:
    """Lend `__main__` a file while Great Expectations is at work.

    Dagster spawns a run's process without one, and `python -c` has none. Great Expectations looks
    for Spark Connect, and PySpark 4.2, when asked for it without its packages, believes such a
    process to be its own doctests and ends it with code 0
    (pyspark.sql.connect.utils.check_dependencies): the step would succeed without a result, or a
    thread vanish without a word. One caller at a time: the others wait.
    """
    main = sys.modules["__main__"]
    with _ONE_AT_A_TIME:
        if getattr(main, "__file__", None) is not None or main.__spec__ is not None:
            yield
            return
        main.__file__ = __file__
        try:
            yield
        finally:
            del main.__file__
