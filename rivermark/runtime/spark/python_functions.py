"""Python functions of a DataFrame. Beyond PySpark's public API; for Spark 4.2.

On a version that makes them another way none is seen, and a plan counts by their names alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql.udf import UserDefinedFunction

_PATCHING: Final = threading.Lock()


@contextmanager
def functions_used() -> Iterator[list[tuple[str, Callable[..., Any]]]]:
    """The functions that this thread applies to columns within the block, by name, each once.

    Those of `udf`, `pandas_udf`, `mapInPandas`, `applyInPandas` and their like.
    """
    used: list[tuple[str, Callable[..., Any]]] = []
    thread, apply = threading.get_ident(), UserDefinedFunction.__call__

    def applied(self: UserDefinedFunction, *columns: Any, **named: Any) -> Column:
        function = (str(self._name), self.func)
        if threading.get_ident() == thread and function not in used:
            used.append(function)
        return apply(self, *columns, **named)

    with _PATCHING:
        UserDefinedFunction.__call__ = applied  # type: ignore[method-assign]
        try:
            yield used
        finally:
            UserDefinedFunction.__call__ = apply  # type: ignore[method-assign]
