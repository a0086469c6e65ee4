"""The code location is loaded without pauses of Python's garbage collector.

Loading makes some hundred thousand objects that live as long as the process. The collector, which
counts new objects, goes through all of them again and again meanwhile: a fifth of the load
(docs/decisions/0007-what-a-start-costs.md).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect nothing in the block; what it made counts as permanent if all went well."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
