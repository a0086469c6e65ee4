"""The code location is loaded by what should load it, and without pauses of garbage collection.

Loading makes some hundred thousand objects that live as long as the process. The collector, which
counts new objects, goes through all of them again and again meanwhile: a fifth of the load
(docs/decisions/0007-what-a-start-costs.md).
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WITHOUT_PAGE: Final = (
    "rivermark: this page has no guard against pages of other sites, no dashboard nor Data Docs "
    "behind its links, nothing that starts it again, and the limits that streams need only where "
    "its dagster.yaml has them; `python -m rivermark.dagster.ui` (make ui) has all of these"
)


def say_without_page() -> None:
    """Warn where a code server of `dagster dev` or `dg dev` loads what the supervisor should."""
    if "DAGSTER_IS_DEV_CLI" in os.environ and "grpc" in sys.argv:
        logging.getLogger("rivermark").warning(WITHOUT_PAGE)


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
