"""The end of the Spark engine, recognized in what an error came from."""

from __future__ import annotations

import traceback

from py4j.protocol import Py4JError, Py4JJavaError

from rivermark.lake.full_disk import chain


def engine_error(error: BaseException) -> BaseException | None:
    """The error of the bridge to the JVM that an error is, or came from; None where there is none.

    Spark wraps a refused connection as if a data type or a plan were wrong. A connection to
    anything else, such as a database, is no bridge.
    """
    for each in chain(error):
        # Py4J's classes have no types.
        named: BaseException = each
        if isinstance(each, Py4JError) and not isinstance(each, Py4JJavaError):
            return named
        if isinstance(named, ConnectionError | EOFError) and _in_the_bridge(named):
            return named
    return None


def _in_the_bridge(error: BaseException) -> bool:
    """Returns True if it was raised by the bridge itself, or by the sockets that it holds."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-3:]
    modules = (str(frame.f_globals.get("__name__", "")) for frame in frames)
    return any(module.partition(".")[0] in ("py4j", "pyspark") for module in modules)
