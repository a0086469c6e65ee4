"""The Spark version whose private parts this package uses, and the switch for any other."""

from __future__ import annotations

from typing import Final

import pyspark

WRITTEN_FOR: Final = "4.2"
"""Each module of this package was written for, and is tested with, this version. On another one it
uses Spark's public interface, which is slower but means the same; what it does then is said in the
module."""


def is_known_version() -> bool:
    """True if the installed Spark is the version that the private accesses were written for."""
    return pyspark.__version__.split(".")[:2] == WRITTEN_FOR.split(".")
